// The beginning and the end in a program that the runtime is linked into: before every constructor, also
// those of shared libraries, and after its own last destructor.

#include "runtime/core/runtime.h"

namespace {

void preinit(int, char **, char **envp) {
  assay::start(envp, true);
}

} // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

// Priority 0 is the executable's last destructor.
__attribute__((destructor(0))) static void end() {
  assay::finish(ASSAY_END_EXIT, 0);
}
