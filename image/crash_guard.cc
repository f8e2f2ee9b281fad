// LLVM's DWARF readers answer most damage with errors, but not all: a unit without a readable first
// entry, for one, makes getVariableForAddress read through a null pointer (found by
// tests/fuzz/symbols_fuzz, LLVM 22). A report over a hundred modules must not end because of one.
//
// LLVM's own CrashRecoveryContext, made for clang's libraries in editors, returns from the signal
// handler to where the work began. What the work had allocated is lost, which is little beside the
// report; a crash with a lock held would hang, and endless loops are not ended. A child process for
// each module was refused: it doubles the memory for what healthy files never need.

#include "image/crash_guard.h"

#include <llvm/Support/CrashRecoveryContext.h>

namespace image {

bool ends_well(llvm::function_ref<void()> work) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  bool ended = context.RunSafely(work);
  llvm::CrashRecoveryContext::Disable();
  return ended;
}

} // namespace image
