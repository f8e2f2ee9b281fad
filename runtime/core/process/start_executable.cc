// The beginning and the end in a program that the runtime is linked into: before every constructor, and after every
// destructor, also those of shared libraries.
//
// The end: the loader registers its own exit handler, which runs the destructors of all modules, when main is
// about to begin. Handlers run in reverse order, so one that is registered before, in .preinit_array, runs last of
// all. A static executable has no loader: there the C library's handler is registered first, and our own destructor
// comes after all others.

#include <elf.h>
#include <sys/auxv.h>

#include "runtime/core/runtime.h"

extern "C" int __cxa_atexit(void (*handler)(void *), void *argument, void *module) noexcept;

namespace {

constinit bool ends_in_handler = false;

void preinit(int, char **, char **envp) {
  assay::start(envp, true);
  bool has_loader = getauxval(AT_BASE) != 0;
  ends_in_handler = has_loader && __cxa_atexit([](void *) { assay::finish(ASSAY_END_EXIT, 0); },
                                               nullptr, nullptr) == 0;
}

} // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

// Priority 0 is the executable's last destructor.
__attribute__((destructor(0))) static void end() {
  if (!ends_in_handler)
    assay::finish(ASSAY_END_EXIT, 0);
}
