// The beginning and the end where the runtime comes as a library into a program that was not rebuilt: by LD_PRELOAD, or
// because an instrumented library needs it. It is linked with -z initfirst: its constructor runs before all others, its
// destructor after them. A rebuilt program begins itself, next of all (start_executable.cc).
//
// One runtime a process: where the program has its own, this one stays off and passes everything on.

#include <dlfcn.h>

#include "runtime/core/runtime.h"

extern "C" __attribute__((weak, visibility("default"))) const char __assay_program_begins;

namespace {

__attribute__((constructor)) void begin(int, char **, char **envp) {
  if (!&__assay_program_begins &&
      dlsym(RTLD_DEFAULT, "__assay_module_init") == (void *)assay_own_module_init)
    assay::start(envp, false, nullptr, 0);
}

__attribute__((destructor)) void end() {
  assay::finish(ASSAY_END_EXIT, 0);
}

} // namespace
