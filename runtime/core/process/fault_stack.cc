// Refused: one for each thread. When the program sets a stack for one thread, handlers that ask for
// a stack may use it, and would run on ours in all other threads; nobody can take a stack from
// another thread. And each new thread would make more system calls than the program does.
//
// The same is left of the first thread, where another one sets a stack: so ours is as large as
// handlers may expect, and ends in a page that nobody may touch.

#include "runtime/core/process/fault_stack.h"

#include <signal.h>
#include <sys/mman.h>

#include "runtime/core/process/fatal_signals.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

constexpr uint64_t kStackBytes = 1 << 20;

constinit uint8_t *fault_stack = nullptr;

stack_t stack_now() {
  stack_t now = {};
  if (sys::failed(sys::call(SYS_sigaltstack, 0, (long)&now)))
    now.ss_flags = SS_DISABLE;
  return now;
}

bool is_none(const stack_t &stack) {
  return stack.ss_flags & SS_DISABLE;
}

bool is_ours(const stack_t &stack) {
  return fault_stack && !is_none(stack) && stack.ss_sp == fault_stack;
}

void set_ours() {
  stack_t ours = {};
  ours.ss_sp = fault_stack;
  ours.ss_size = kStackBytes;
  sys::call(SYS_sigaltstack, (long)&ours, 0);
}

} // namespace

void use_fault_stack() {
  if (!is_none(stack_now()))
    return;
  auto *memory = (uint8_t *)reserve(kPage + kStackBytes);
  if (!memory || sys::failed(sys::call(SYS_mprotect, (long)memory, kPage, PROT_NONE)))
    return;
  fault_stack = memory + kPage;
  set_ours();
}

bool has_fault_stack() {
  return fault_stack != nullptr;
}

} // namespace assay

using namespace assay;

// The kernel judges what it is given, before anything here reads it.
ASSAY_EXPORT int ASSAY_NAME(sigaltstack)(const stack_t *stack, stack_t *before) {
  find_real_functions();
  if (!fault_stack)
    return real.sigaltstack(stack, before);
  const bool was_ours = is_ours(stack_now());
  const int result = real.sigaltstack(stack, before);
  if (result == 0 && before && was_ours) {
    *before = {};
    before->ss_flags = SS_DISABLE;
  }
  const stack_t now = stack_now();
  if (stack && is_none(now) && was_ours && hides_fault_stack())
    set_ours();
  else if (stack && !is_none(now) && !is_ours(now))
    let_handlers_use_signal_stacks();
  return result;
}
