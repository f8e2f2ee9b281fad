// operator new and delete. libstdc++'s call malloc from code without frame pointers, which would
// hide the function that says `new`. Weak, so that a program's own operators win; a C program never
// refers to them. What must throw or call a new_handler is left to the real operator: it calls
// malloc again, which fails again, and the exception passes through our frames.
//
// A program may replace two operators and rely on the others to call these ([new.delete]): delete[]
// calls delete, a sized delete the one without a size, new[] calls new. So do ours, as the C++
// library's. Where a shared library replaces one, ours forwards to it
// (core/system/replaced_operators.h).

#include <dlfcn.h>

#include "runtime/core/objects/allocate.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/system/message.h"
#include "runtime/core/system/replaced_operators.h"

using namespace assay;

// A static program has none of the loader's.
extern "C" __attribute__((weak)) void *dlopen(const char *, int) noexcept;
extern "C" __attribute__((weak)) int dladdr(const void *, Dl_info *) noexcept;
extern "C" __attribute__((weak)) void _ZSt17__throw_bad_allocv();    // std::__throw_bad_alloc
extern "C" __attribute__((weak)) void (*_ZSt15get_new_handlerv())(); // std::get_new_handler

namespace {

// A function of the C++ library: ours, where there is one from the beginning; else that of the
// plug-in that has brought one. `frame` is that of the operator that the plug-in called.
template <typename F> F *of_cxx_library(F *known, const char *symbol, const void *frame) {
  Dl_info caller;
  if (known || !&dlopen || !&dladdr || !dladdr(((void *const *)frame)[1], &caller))
    return known;
  void *module = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  F *found = module ? (F *)dlsym(module, symbol) : nullptr;
  if (module)
    real.dlclose(module); // it is there as before
  return found;
}

// Without another operator behind ours, as with -static-libstdc++, and in a C program with plug-ins.
void *allocate_or_handle(size_t size, size_t align, AllocationFunction how, const void *frame) {
  if (auto *get_handler = of_cxx_library(&_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv", frame))
    while (auto *handler = get_handler()) {
      handler();
      if (void *block = allocate(size, align, how, frame))
        return block;
    }
  if (auto *throw_bad_alloc =
          of_cxx_library(&_ZSt17__throw_bad_allocv, "_ZSt17__throw_bad_allocv", frame))
    throw_bad_alloc();
  say("operator new failed, and there is no C++ library to say so");
  __builtin_trap();
}

void *allocate_or_throw(size_t size, size_t align, const void *frame) {
  const auto how = align ? AllocationFunction::kAlignedAlloc : AllocationFunction::kMalloc;
  size_t wanted = size ? size : 1;
  void *block = allocate(wanted, align, how, frame);
  if (__builtin_expect(block != nullptr, 1))
    return block;
  if (!throwing_operators.allocate)
    return allocate_or_handle(wanted, align, how, frame);
  return align ? throwing_operators.allocate_aligned(size, align)
               : throwing_operators.allocate(size);
}

} // namespace

// The operator that a shared library has instead, or null. Ours goes there by a jump, and so from
// operator to operator: what is called sees the program's frame as its caller's.
#define ASSAY_REPLACED(name)                                                                       \
  (__builtin_expect(operators_are_replaced, 0) ? replaced_operators.name : nullptr)

// The parameters are those of the mangled names; the nothrow tag is a reference, unused.
ASSAY_EXPORT void *_Znwm(size_t size) {
  if (auto *own = ASSAY_REPLACED(_Znwm))
    return own(size);
  return allocate_or_throw(size, 0, ASSAY_FRAME);
}
ASSAY_EXPORT void *_ZnwmSt11align_val_t(size_t size, size_t align) {
  if (auto *own = ASSAY_REPLACED(_ZnwmSt11align_val_t))
    return own(size, align);
  return allocate_or_throw(size, align, ASSAY_FRAME);
}
ASSAY_EXPORT void _ZdlPv(void *block) {
  if (auto *own = ASSAY_REPLACED(_ZdlPv))
    return own(block);
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void _ZdlPvSt11align_val_t(void *block, size_t align) {
  if (auto *own = ASSAY_REPLACED(_ZdlPvSt11align_val_t))
    return own(block, align);
  release(block, ASSAY_FRAME);
}

ASSAY_EXPORT void *_Znam(size_t size) {
  if (auto *own = ASSAY_REPLACED(_Znam))
    return own(size);
  return _Znwm(size);
}
ASSAY_EXPORT void *_ZnamSt11align_val_t(size_t size, size_t align) {
  if (auto *own = ASSAY_REPLACED(_ZnamSt11align_val_t))
    return own(size, align);
  return _ZnwmSt11align_val_t(size, align);
}
ASSAY_EXPORT void _ZdaPv(void *block) {
  if (auto *own = ASSAY_REPLACED(_ZdaPv))
    return own(block);
  _ZdlPv(block);
}
ASSAY_EXPORT void _ZdlPvm(void *block, size_t size) {
  if (auto *own = ASSAY_REPLACED(_ZdlPvm))
    return own(block, size);
  _ZdlPv(block);
}
ASSAY_EXPORT void _ZdlPvRKSt9nothrow_t(void *block, const void *tag) {
  if (auto *own = ASSAY_REPLACED(_ZdlPvRKSt9nothrow_t))
    return own(block, tag);
  _ZdlPv(block);
}
ASSAY_EXPORT void _ZdaPvm(void *block, size_t size) {
  if (auto *own = ASSAY_REPLACED(_ZdaPvm))
    return own(block, size);
  _ZdaPv(block);
}
ASSAY_EXPORT void _ZdaPvRKSt9nothrow_t(void *block, const void *tag) {
  if (auto *own = ASSAY_REPLACED(_ZdaPvRKSt9nothrow_t))
    return own(block, tag);
  _ZdaPv(block);
}
ASSAY_EXPORT void _ZdaPvSt11align_val_t(void *block, size_t align) {
  if (auto *own = ASSAY_REPLACED(_ZdaPvSt11align_val_t))
    return own(block, align);
  _ZdlPvSt11align_val_t(block, align);
}
ASSAY_EXPORT void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align) {
  if (auto *own = ASSAY_REPLACED(_ZdlPvmSt11align_val_t))
    return own(block, size, align);
  _ZdlPvSt11align_val_t(block, align);
}
ASSAY_EXPORT void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *tag) {
  if (auto *own = ASSAY_REPLACED(_ZdlPvSt11align_val_tRKSt9nothrow_t))
    return own(block, align, tag);
  _ZdlPvSt11align_val_t(block, align);
}
ASSAY_EXPORT void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align) {
  if (auto *own = ASSAY_REPLACED(_ZdaPvmSt11align_val_t))
    return own(block, size, align);
  _ZdaPvSt11align_val_t(block, align);
}
ASSAY_EXPORT void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *tag) {
  if (auto *own = ASSAY_REPLACED(_ZdaPvSt11align_val_tRKSt9nothrow_t))
    return own(block, align, tag);
  _ZdaPvSt11align_val_t(block, align);
}
