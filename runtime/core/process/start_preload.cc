// The beginning and the end where the runtime comes by LD_PRELOAD into a program that was not rebuilt. The
// library is linked with -z initfirst: its constructor runs before all others, its destructor after them.
//
// One runtime a process: where the program has its own, this one stays off and passes everything on.

#include <dlfcn.h>

#include "runtime/core/runtime.h"

namespace {

__attribute__((constructor)) void begin(int, char **, char **envp) {
  if (dlsym(RTLD_DEFAULT, "__assay_module_init") == (void *)assay_own_module_init)
    assay::start(envp, false);
}

__attribute__((destructor)) void end() {
  assay::finish(ASSAY_END_EXIT, 0);
}

} // namespace
