// The beginning and the end in a program that was built with assay-cc, whether the runtime is
// linked into it or a library that it needs: before every constructor, and after every destructor,
// also those of shared libraries.
//
// The end: the loader registers its own exit handler, which runs the destructors of all modules, when main is
// about to begin. Handlers run in reverse order, so one that is registered before, in .preinit_array, runs last of
// all. A static executable has no loader: there the C library's handler is registered first, and our own destructor
// comes after all others.

#include <elf.h>
#include <sys/auxv.h>

#include "runtime/core/process/start_static.h"
#include "runtime/core/runtime.h"

extern "C" int __cxa_atexit(void (*handler)(void *), void *argument, void *module) noexcept;

// The SITES section of the executable; absent where it has none.
extern "C" __attribute__((weak, visibility("hidden"))) const char __start_assay_sites,
    __stop_assay_sites;

// Tells a runtime that is a library, and whose constructor is the first of all, to leave the beginning to this program.
extern "C" __attribute__((visibility("default"))) const char __assay_program_begins;
const char __assay_program_begins = 1;

namespace {

constinit bool ends_in_handler = false;

void preinit(int, char **, char **envp) {
  if (&assay::stop_mapping_early)
    assay::stop_mapping_early();
  __assay_program_start(envp, &__start_assay_sites,
                        (uint64_t)(&__stop_assay_sites - &__start_assay_sites));
  bool has_loader = getauxval(AT_BASE) != 0;
  ends_in_handler =
      has_loader && __cxa_atexit([](void *) { __assay_program_end(); }, nullptr, nullptr) == 0;
}

} // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

// Priority 0 is the executable's last destructor.
__attribute__((destructor(0))) static void end() {
  if (!ends_in_handler)
    __assay_program_end();
}
