// Whether the last owner of a stack still lives is asked of the kernel, of a few stacks for each new thread: threads end in many ways,
// most of them unseen. A stack costs address space, and memory where a thread of its has faulted.
//
// Not covered: threads that have ours when the program sets one for another; their handlers run on it. And who calls the kernel
// without libc is told of our stack. It is as large as what runtimes of languages
// that do so give themselves.

#include "runtime/core/process/fault_stacks.h"

#include <errno.h>
#include <signal.h>

#include "runtime/core/process/fatal_signals.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/syscall.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

constexpr uint64_t kStackBytes = 64 << 10;
constexpr uint32_t kMaxStacks = 4096; // of threads that live at one time
constexpr uint32_t kLooks = 8;        // at stacks that had an owner, for each new thread

struct {
  SpinLock lock;
  uint8_t *low; // of all stacks; null: they are not used
  uint32_t *owners;
  uint32_t count, next; // in use, by this or an earlier thread; where to look next
  bool program_has_one;
} constinit stacks = {};

stack_t stack_now() {
  stack_t now = {};
  if (sys::failed(sys::call(SYS_sigaltstack, 0, (long)&now)))
    now.ss_flags = SS_DISABLE;
  return now;
}

bool is_ours(const stack_t &stack) {
  const auto *low = (const uint8_t *)stack.ss_sp;
  return stacks.low && !(stack.ss_flags & SS_DISABLE) && low >= stacks.low &&
         low < stacks.low + kMaxStacks * kStackBytes;
}

// The number of a stack that nobody has; kMaxStacks if there is none.
uint32_t choose() {
  for (uint32_t looks = 0; looks < kLooks && looks < stacks.count; looks++) {
    const uint32_t number = stacks.next++ % stacks.count;
    if (!sys::thread_lives(runtime.pid, stacks.owners[number]))
      return number;
  }
  return stacks.count < kMaxStacks ? stacks.count++ : kMaxStacks;
}

void set_stack(uint32_t number) {
  stack_t ours = {};
  ours.ss_sp = stacks.low + number * kStackBytes;
  ours.ss_size = kStackBytes;
  sys::call(SYS_sigaltstack, (long)&ours, 0);
}

void reset_in_child() {
  stacks.lock.reset();
  if (!stacks.low)
    return;
  for (uint32_t i = 0; i < stacks.count; i++)
    stacks.owners[i] = 0;
  const stack_t now = stack_now();
  if (is_ours(now))
    stacks.owners[((uint8_t *)now.ss_sp - stacks.low) / kStackBytes] = sys::thread_id();
}
ASSAY_RESET_IN_CHILD(reset_in_child);

} // namespace

void use_fault_stacks() {
  stacks.owners = (uint32_t *)reserve(kMaxStacks * sizeof(uint32_t));
  if (stacks.owners)
    stacks.low = (uint8_t *)reserve(kMaxStacks * kStackBytes);
  give_fault_stack();
}

void give_fault_stack() {
  if (has_program_signal_stack() || !(stack_now().ss_flags & SS_DISABLE))
    return;
  Locked locked(stacks.lock);
  const uint32_t number = choose();
  if (number == kMaxStacks)
    return;
  stacks.owners[number] = sys::thread_id();
  set_stack(number);
}

bool has_program_signal_stack() {
  return !stacks.low || __atomic_load_n(&stacks.program_has_one, __ATOMIC_RELAXED);
}

} // namespace assay

using namespace assay;

ASSAY_EXPORT int ASSAY_NAME(sigaltstack)(const stack_t *stack, stack_t *before) {
  find_real_functions();
  if (!stacks.low || !runtime.recording || sys::process_id() != runtime.pid)
    return real.sigaltstack(stack, before);
  const stack_t now = stack_now();
  const bool was_ours = is_ours(now);
  if (stack) {
    const stack_t wanted = *stack; // it may be where `before` is
    if (real.sigaltstack(&wanted, was_ours ? nullptr : before) != 0)
      return -1;
    if (wanted.ss_flags & SS_DISABLE) {
      if (was_ours && !has_program_signal_stack())
        sys::call(SYS_sigaltstack, (long)&now, 0);
    } else if (!has_program_signal_stack()) {
      ReentrancyGuard busy;
      __atomic_store_n(&stacks.program_has_one, true, __ATOMIC_RELAXED);
      let_handlers_use_signal_stacks();
    }
  } else if (!was_ours) {
    return real.sigaltstack(nullptr, before);
  }
  if (before && was_ours) {
    *before = {};
    before->ss_flags = SS_DISABLE;
  }
  return 0;
}
