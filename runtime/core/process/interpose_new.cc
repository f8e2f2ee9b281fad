// operator new and delete. libstdc++'s call malloc from code without frame pointers, which would
// hide the function that says `new`. Weak, so that a program's own operators win; a C program never
// refers to them. What must throw or call a new_handler is left to the real operator: it calls
// malloc again, which fails again, and the exception passes through our frames.
//
// A program may replace two operators and rely on the others to call these ([new.delete]): delete[] calls delete, a
// sized delete the one without a size, new[] calls new. Ours do so where the operator that they would call is not ours.

#include "runtime/core/objects/allocate.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/system/message.h"

using namespace assay;

extern "C" __attribute__((weak)) void _ZSt17__throw_bad_allocv();    // std::__throw_bad_alloc
extern "C" __attribute__((weak)) void (*_ZSt15get_new_handlerv())(); // std::get_new_handler

namespace {

// Without another operator behind ours, as with -static-libstdc++.
void *allocate_or_handle(size_t size, size_t align, AllocationFunction how, const void *frame) {
  while (auto *handler = &_ZSt15get_new_handlerv ? _ZSt15get_new_handlerv() : nullptr) {
    handler();
    if (void *block = allocate(size, align, how, frame))
      return block;
  }
  if (&_ZSt17__throw_bad_allocv)
    _ZSt17__throw_bad_allocv();
  say("operator new failed, and there is no C++ library to say so");
  __builtin_trap();
}

void *allocate_or_throw(size_t size, size_t align, const void *frame) {
  const auto how = align ? AllocationFunction::kAlignedAlloc : AllocationFunction::kMalloc;
  size_t wanted = size ? size : 1;
  void *block = allocate(wanted, align, how, frame);
  if (__builtin_expect(block != nullptr, 1))
    return block;
  find_real_functions();
  if (!real.operator_new)
    return allocate_or_handle(wanted, align, how, frame);
  return align ? real.operator_new_aligned(size, align) : real.operator_new(size);
}

} // namespace

// The parameters are those of the mangled names; the nothrow tag is a reference, unused. OWN is what SYMBOL is unless the
// program replaced it.
#define ASSAY_OPERATOR(result, symbol, own, parameters)                                            \
  extern "C" result own parameters;                                                                \
  ASSAY_EXPORT result symbol parameters __attribute__((alias(#own)));                              \
  extern "C" __attribute__((visibility("hidden"))) result own parameters

ASSAY_OPERATOR(void *, _Znwm, assay_own_new, (size_t n)) {
  return allocate_or_throw(n, 0, ASSAY_FRAME);
}
ASSAY_OPERATOR(void *, _ZnwmSt11align_val_t, assay_own_new_aligned, (size_t n, size_t a)) {
  return allocate_or_throw(n, a, ASSAY_FRAME);
}
ASSAY_EXPORT void *_Znam(size_t n) {
  if (_Znwm != assay_own_new)
    return _Znwm(n);
  return allocate_or_throw(n, 0, ASSAY_FRAME);
}
ASSAY_EXPORT void *_ZnamSt11align_val_t(size_t n, size_t a) {
  if (_ZnwmSt11align_val_t != assay_own_new_aligned)
    return _ZnwmSt11align_val_t(n, a);
  return allocate_or_throw(n, a, ASSAY_FRAME);
}

ASSAY_OPERATOR(void, _ZdlPv, assay_own_delete, (void *block)) {
  release(block, ASSAY_FRAME);
}
ASSAY_OPERATOR(void, _ZdlPvSt11align_val_t, assay_own_delete_aligned, (void *block, size_t)) {
  release(block, ASSAY_FRAME);
}
ASSAY_OPERATOR(void, _ZdaPv, assay_own_delete_array, (void *block)) {
  if (_ZdlPv != assay_own_delete)
    return _ZdlPv(block);
  release(block, ASSAY_FRAME);
}
ASSAY_OPERATOR(void, _ZdaPvSt11align_val_t, assay_own_delete_array_aligned,
               (void *block, size_t align)) {
  if (_ZdlPvSt11align_val_t != assay_own_delete_aligned)
    return _ZdlPvSt11align_val_t(block, align);
  release(block, ASSAY_FRAME);
}

// Those with a size or a tag call the one without, of an object or of an array.
#define ASSAY_DELETE(symbol, ...)                                                                  \
  ASSAY_EXPORT void symbol(void *block __VA_OPT__(, ) __VA_ARGS__) {                               \
    if (_ZdlPv != assay_own_delete)                                                                \
      return _ZdlPv(block);                                                                        \
    release(block, ASSAY_FRAME);                                                                   \
  }
#define ASSAY_DELETE_ARRAY(symbol, ...)                                                            \
  ASSAY_EXPORT void symbol(void *block __VA_OPT__(, ) __VA_ARGS__) {                               \
    if (_ZdaPv != assay_own_delete_array || _ZdlPv != assay_own_delete)                            \
      return _ZdaPv(block);                                                                        \
    release(block, ASSAY_FRAME);                                                                   \
  }
#define ASSAY_DELETE_ALIGNED(symbol, ...)                                                          \
  ASSAY_EXPORT void symbol(void *block, __VA_ARGS__) {                                             \
    if (_ZdlPvSt11align_val_t != assay_own_delete_aligned)                                         \
      return _ZdlPvSt11align_val_t(block, align);                                                  \
    release(block, ASSAY_FRAME);                                                                   \
  }
#define ASSAY_DELETE_ARRAY_ALIGNED(symbol, ...)                                                    \
  ASSAY_EXPORT void symbol(void *block, __VA_ARGS__) {                                             \
    if (_ZdaPvSt11align_val_t != assay_own_delete_array_aligned ||                                 \
        _ZdlPvSt11align_val_t != assay_own_delete_aligned)                                         \
      return _ZdaPvSt11align_val_t(block, align);                                                  \
    release(block, ASSAY_FRAME);                                                                   \
  }
ASSAY_DELETE(_ZdlPvm, size_t)
ASSAY_DELETE(_ZdlPvRKSt9nothrow_t, const void *)
ASSAY_DELETE_ARRAY(_ZdaPvm, size_t)
ASSAY_DELETE_ARRAY(_ZdaPvRKSt9nothrow_t, const void *)
ASSAY_DELETE_ALIGNED(_ZdlPvmSt11align_val_t, size_t, size_t align)
ASSAY_DELETE_ALIGNED(_ZdlPvSt11align_val_tRKSt9nothrow_t, size_t align, const void *)
ASSAY_DELETE_ARRAY_ALIGNED(_ZdaPvmSt11align_val_t, size_t, size_t align)
ASSAY_DELETE_ARRAY_ALIGNED(_ZdaPvSt11align_val_tRKSt9nothrow_t, size_t align, const void *)
