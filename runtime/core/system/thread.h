// What the runtime keeps for each thread: a small initial-exec block, all zeros at the start.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay {

struct Thread {
  uint32_t busy;      // inside the runtime: events of this thread pass straight through
  bool is_helper;     // the helper thread
  bool has_own_table; // of descriptors (core/system/own_files.h): the helper, where the kernel can
  uint32_t pending_signal;        // came while busy, and would have ended the program; 0 for none
  uint64_t stack_low, stack_high; // bounds of the thread's own stack
  uint64_t other_low, other_high; // of another that it ran on last: a coroutine's, a signal stack
  uint32_t number;                // 1 is the main one; 0: not asked for yet
  const void *last_block;         // newest allocation, to tell temporaries
};

extern thread_local constinit Thread this_thread __attribute__((tls_model("initial-exec")));

// Raises again the fatal signal that came while the thread was busy (fatal_signals.cc).
void raise_pending_signal();

// Held while the runtime works on behalf of this thread. A signal handler, or libc code that the
// runtime calls, sees it and takes the plain way: no deadlock, no recursion.
class ReentrancyGuard {
public:
  ReentrancyGuard() : was_(this_thread.busy) { this_thread.busy = 1; }
  ~ReentrancyGuard() {
    this_thread.busy = was_;
    if (__builtin_expect(this_thread.pending_signal != 0, 0) && !was_)
      raise_pending_signal();
  }
  bool nested() const { return was_ != 0; }
  ReentrancyGuard(const ReentrancyGuard &) = delete;
  ReentrancyGuard &operator=(const ReentrancyGuard &) = delete;

private:
  uint32_t was_;
};

// Its number among the threads that were asked: the first one is the main thread, where the runtime starts
// with the program.
constexpr uint32_t kMainThread = 1;
uint32_t number_thread(); // gives it one, once
inline uint32_t thread_number() {
  return this_thread.number ? this_thread.number : number_thread();
}

} // namespace assay
