// operator new and delete. libstdc++'s call malloc from code without frame pointers, which would
// hide the function that says `new`. Weak, so that a program's own operators win; a C program never
// refers to them. What must throw or call a new_handler is left to the real operator: it calls
// malloc again, which fails again, and the exception passes through our frames.

#include "runtime/core/objects/allocate.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/system/message.h"

using namespace assay;

extern "C" __attribute__((weak)) void _ZSt17__throw_bad_allocv(); // std::__throw_bad_alloc

namespace {

void *allocate_or_throw(size_t size, size_t align, const void *frame) {
  void *block =
      allocate(size ? size : 1, align,
               align ? AllocationFunction::kAlignedAlloc : AllocationFunction::kMalloc, frame);
  if (__builtin_expect(block != nullptr, 1))
    return block;
  find_real_functions();
  if (!real.operator_new) { // -static-libstdc++: there is no other operator behind ours
    if (&_ZSt17__throw_bad_allocv)
      _ZSt17__throw_bad_allocv();
    say("operator new failed, and there is no C++ library to say so");
    __builtin_trap();
  }
  return align ? real.operator_new_aligned(size, align) : real.operator_new(size);
}

} // namespace

// The parameters are those of the mangled names; the nothrow tag is a reference, unused.
ASSAY_EXPORT void *_Znwm(size_t n) {
  return allocate_or_throw(n, 0, ASSAY_FRAME);
}
ASSAY_EXPORT void *_Znam(size_t n) {
  return allocate_or_throw(n, 0, ASSAY_FRAME);
}
ASSAY_EXPORT void *_ZnwmSt11align_val_t(size_t n, size_t a) {
  return allocate_or_throw(n, a, ASSAY_FRAME);
}
ASSAY_EXPORT void *_ZnamSt11align_val_t(size_t n, size_t a) {
  return allocate_or_throw(n, a, ASSAY_FRAME);
}

#define ASSAY_DELETE(symbol, ...)                                                                  \
  ASSAY_EXPORT void symbol(void *block __VA_OPT__(, ) __VA_ARGS__) {                               \
    release(block, ASSAY_FRAME);                                                                   \
  }
ASSAY_DELETE(_ZdlPv)
ASSAY_DELETE(_ZdaPv)
ASSAY_DELETE(_ZdlPvm, size_t)
ASSAY_DELETE(_ZdaPvm, size_t)
ASSAY_DELETE(_ZdlPvSt11align_val_t, size_t)
ASSAY_DELETE(_ZdaPvSt11align_val_t, size_t)
ASSAY_DELETE(_ZdlPvmSt11align_val_t, size_t, size_t)
ASSAY_DELETE(_ZdaPvmSt11align_val_t, size_t, size_t)
ASSAY_DELETE(_ZdlPvRKSt9nothrow_t, const void *)
ASSAY_DELETE(_ZdaPvRKSt9nothrow_t, const void *)
ASSAY_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, size_t, const void *)
ASSAY_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, size_t, const void *)
