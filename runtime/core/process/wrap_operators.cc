// operator new and delete of a program that brings its own malloc, reached by the linker's --wrap. Such
// programs and allocators often have operators of their own, which must stay in use: so the real one
// makes the block, and if nothing below it was seen to do so (a malloc that we stand before), the block
// is an object from here on.
//
// An exception of the real operator passes through: no section of ours is open then.

#include "runtime/core/objects/allocate.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

void note_new(void *block, size_t size, const void *frame) {
  if (!block || !may_record() || !runtime.side.exists())
    return;
  ReentrancyGuard busy;
  SideObject known;
  if (runtime.side.find(block, known))
    return;
  begin_side_object(runtime.side, block, size, nullptr, context_of(frame, take_next_type()));
}

void note_delete(void *block, const void *frame) {
  if (!block || !may_record() || !runtime.side.exists())
    return;
  ReentrancyGuard busy;
  SideObject object;
  if (runtime.side.take(block, object))
    end_object(block, object.header, frame);
}

} // namespace
} // namespace assay

using namespace assay;

#define ASSAY_INTERPOSED(name)
#define ASSAY_INTERPOSED_DYNAMIC(name)
#define ASSAY_INTERPOSED_NEW(name, parameters, arguments)                                          \
  extern "C" __attribute__((weak)) void *__real_##name parameters;                                 \
  ASSAY_EXPORT void *__wrap_##name parameters {                                                    \
    void *block = __real_##name arguments;                                                         \
    note_new(block, a, ASSAY_FRAME);                                                               \
    return block;                                                                                  \
  }
#define ASSAY_INTERPOSED_DELETE(name, parameters, arguments)                                       \
  extern "C" __attribute__((weak)) void __real_##name parameters;                                  \
  ASSAY_EXPORT void __wrap_##name parameters {                                                     \
    note_delete(a, ASSAY_FRAME);                                                                   \
    __real_##name arguments;                                                                       \
  }
#include "abi/interposed.def"
