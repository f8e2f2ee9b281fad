// Calls into LLVM's readers of debug info that survive the callee's crash.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

namespace image {

// False if `work` crashed (SIGSEGV, SIGABRT and their like): it was left in its middle, and objects
// of LLVM that it used must be neither used nor destroyed. It throws nothing. The first call installs
// handlers for these signals, for good; a crash outside of `work` is passed on to those before.
bool ends_well(llvm::function_ref<void()> work);

} // namespace image
