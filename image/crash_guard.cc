// LLVM's DWARF readers answer most damage with errors, but not all: a unit without a readable first
// entry, for one, makes getVariableForAddress read through a null pointer (found by
// tests/fuzz/symbols_fuzz, LLVM 22). A report over a hundred modules must not end because of one.
//
// LLVM's own CrashRecoveryContext, made for clang's libraries in editors, returns from the signal
// handler to where the work began. What the work had allocated is lost, which is little beside the
// report; a crash with a lock held would hang; endless loops and overflows of the stack are not
// caught. Its handlers stay installed, because installing them for each call takes as long as the
// call; crashes elsewhere go from them to whoever handled them before.
//
// A child process for each module was refused: it doubles the memory for what healthy files never
// need.

#include "image/crash_guard.h"

#include <llvm/Support/CrashRecoveryContext.h>

#include <mutex>

namespace image {

bool ends_well(llvm::function_ref<void()> work) {
  static std::once_flag enabled;
  std::call_once(enabled, llvm::CrashRecoveryContext::Enable);
  llvm::CrashRecoveryContext context;
  return context.RunSafely(work);
}

} // namespace image
