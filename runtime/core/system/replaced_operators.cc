// The next definition of an operator in the lookup order is a library's replacement, unless it lies in
//   - the C++ library, known by what only it defines: the throwing of exceptions, the handler of new. libc++ is two files;
//   - the module of the next malloc: an allocator (jemalloc, tcmalloc), whose operators allocate as its malloc, which is
//     behind ours already. Called by ours its blocks are seen, called by its own operators they would not be.

#include "runtime/core/system/replaced_operators.h"

#include <dlfcn.h>

#include "runtime/core/system/real_functions.h"

// Weak: a static program has neither, and no libraries.
extern "C" __attribute__((weak)) void *dlsym(void *, const char *) noexcept;
extern "C" __attribute__((weak)) int dladdr(const void *, Dl_info *) noexcept;

namespace assay {

constinit bool operators_are_replaced = false;
constinit ReplacedOperators replaced_operators = {};
constinit ThrowingOperators throwing_operators = {};

namespace {

// Where the module begins that holds the next definition of the symbol; null without one.
const void *module_of(const void *address) {
  Dl_info info = {};
  return address && dladdr(address, &info) ? info.dli_fbase : nullptr;
}

const void *module_of_next(const char *symbol) {
  return module_of(dlsym(RTLD_NEXT, symbol));
}

} // namespace

void look_for_replaced_operators() {
  if (!&dlsym || !&dladdr)
    return;
  ResolvingFunctions resolving;
  void *const next_new = dlsym(RTLD_NEXT, "_Znwm");
  if (!next_new && !dlsym(RTLD_NEXT, "_ZdlPv")) // no C++ library
    return;
#ifndef ASSAY_WRAP // by those behind ours what they make after a handler of new would not be recorded
  throwing_operators = {
      reinterpret_cast<void *(*)(size_t)>(next_new),
      reinterpret_cast<void *(*)(size_t, size_t)>(dlsym(RTLD_NEXT, "_ZnwmSt11align_val_t"))};
#endif
  const void *const not_replacing[] = {module_of_next("__cxa_throw"),
                                       module_of_next("_ZSt15get_new_handlerv"),
                                       module_of_next("malloc")};
  const auto replacement = [&](const char *symbol) -> void * {
    void *const next = dlsym(RTLD_NEXT, symbol);
    const void *const module = module_of(next);
    if (!module)
      return nullptr;
    for (const void *each : not_replacing)
      if (module == each)
        return nullptr;
    operators_are_replaced = true;
    return next;
  };
#define ASSAY_INTERPOSED(name)
#define ASSAY_INTERPOSED_DYNAMIC(name)
#define ASSAY_INTERPOSED_NEW(name, parameters, arguments)                                          \
  replaced_operators.name = reinterpret_cast<void *(*)parameters>(replacement(#name));
#define ASSAY_INTERPOSED_DELETE(name, parameters, arguments)                                       \
  replaced_operators.name = reinterpret_cast<void(*) parameters>(replacement(#name));
#include "abi/interposed.def"
}

} // namespace assay
