// The runtime of `assay values` in a program: a handler of a signal that interprets the next
// instructions of the thread that it interrupted. Signals come from a perf event or a timer of each
// thread. A library of its own, preloaded; it shares nothing with the runtime of instrumented
// programs but system calls, and uses no memory of the program's heap and no descriptor.
#pragma once

#include "abi/records.h"
#include "abi/sample_state.h"
#include "abi/upcall.h"
#include "runtime/core/system/export.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

namespace assay::upcall {

// The function that ours stands in front of, looked up once.
template <class Function> Function *real_function(Function *&known, const char *name) {
  if (!known)
    known = (Function *)dlsym(RTLD_NEXT, name);
  return known;
}

// What this process shares with the tool; null where it is not sampled.
struct Shared {
  const assay_upcall_header *header;
  const assay_code_page *pages;
  const assay_uop *entries;
  const assay_upcall_place *places;
  assay_upcall_news *news;
  assay_upcall_slot *slots;
};
extern Shared shared;

// State of the process. A child of fork keeps the number of its program, exec begins another one.
extern uint32_t process, program;
// No more samples are taken here, and the handler makes no system call: the program confines itself
// (seccomp), or reads signals itself.
extern bool is_off;

inline bool is_timer() {
  return shared.header->collector == ASSAY_COLLECTOR_TIMER;
}
// Perf events send SIGTRAP, nothing else. Timers may send any: one of which the kernel keeps as
// many as come, so that a signal of ours that waits swallows none of the program's.
constexpr int kTimerSignal = 61;
inline int our_signal() {
  return is_timer() ? kTimerSignal : SIGTRAP;
}
inline uint64_t our_signal_bit() {
  return uint64_t{1} << (our_signal() - 1);
}
inline bool is_over() {
  return __atomic_load_n(&shared.header->is_over, __ATOMIC_ACQUIRE) != 0;
}

struct RecentMiss {
  uint64_t address, ns, file;
};
// What the loader has mapped there, or the page of what it has not; of one sample.
struct Loaded {
  uint64_t begin, end;
  uint64_t file; // assay_upcall_file_hash(); 0: not loaded by it
  uint32_t sample;
};
// A file that was seen lately, and where it was. As long as there are the same words there, which have its build id, it
// is the same file.
constexpr unsigned kFileWords = 5, kFiles = 8;
struct KnownFile {
  uint64_t begin; // 0: none is kept here
  uint64_t file;  // assay_upcall_file_hash()
  uint64_t id_at; // of the build id, from the begin on; files without one are not kept
  uint64_t words[kFileWords];
};
constexpr unsigned kRecentMisses = 64;
constexpr unsigned kLineBytes = 64, kLines = 32;
// Memory that the kernel was asked for, in one sample.
struct Line {
  uint64_t address;
  uint32_t sample;
  uint8_t bytes[kLineBytes];
};
constexpr size_t kStackBytes = size_t{128} << 10;
// What the handler needs beside what the kernel puts on the stack.
constexpr size_t kHandlerStackBytes = 3072;

// What is kept for a thread that is sampled, in memory of our own.
struct Thread {
  Thread *next;
  uint32_t tid; // 0: nobody's
  assay_upcall_slot *slot;
  void *event; // the mapping that keeps the perf event; null: there is none
  int timer, cpu_timer;
  bool has_timers;
  bool is_working; // the handler has not returned
  bool is_masked;  // the program believes that it blocks our signal (masks.cc)
  bool has_held;   // and one has come for it
  siginfo_t held;
  uint64_t random;
  void *stack;
  bool loads_directly; // in this sample
  int level; // of the memory hierarchy, that answered the last load, as bits; -1: it was not timed
  RecentMiss recent[kRecentMisses];
  Loaded loaded;
  KnownFile files[kFiles];
  uint64_t file_begin[ASSAY_UPCALL_FILE_BYTES / 8]; // of it; the stack may be a small one
  Line lines[kLines];
  assay_interpreter run;
};
extern thread_local constinit Thread *mine;

// Whether the tool knows this process by the number that it has for itself: not in a namespace of processes of its own.
bool is_known_by_number();

// Once, before samples: what says where the loader has loaded files (glibc 2.35).
void find_loader();

// "assay: TEXT" on standard error.
void say(const char *text);

// Threads (threads.cc). Samples are taken of the calling thread from here on. Not in a signal handler.
void sample_thread();
// No signal of ours comes to the calling thread from here on. May be called in the handler.
void stop_sampling(Thread &thread);
void follow_forks();
// In a child that shares the memory of its parent, nothing of ours may change.
bool is_in_own_process();
// Timers: no signal until the thread has used processor time again; and signals again.
void wait_for_work(Thread &thread);
void go_on(Thread &thread);

// The handler (handler.cc).
void on_signal(int number, siginfo_t *info, void *context);

// Threads that begin with our signal blocked (masks.cc). In the calling thread: it is not blocked,
// and the program is told that it is; it is blocked; and 1 if a signal that has come is held for
// the program.
void begin_masked(Thread &thread);
void end_masked(Thread &thread);
bool hold(Thread &thread, const siginfo_t &info);

// Signals (signals.cc).
void take_signals();
// Passes on a signal that is not ours to the program.
void pass_on(int number, siginfo_t *info, void *context);
// A fault in a load of ours goes no further: loads need no system call.
bool loads_are_guarded();
// Timers: while one of these lives, no signal of ours ends a wait of the calling thread (waits.cc).
class HiddenWait {
public:
  HiddenWait();
  ~HiddenWait();
  HiddenWait(const HiddenWait &) = delete;
  HiddenWait &operator=(const HiddenWait &) = delete;

private:
  uint64_t before_ = 0;
  bool blocks_;
};
// Takes back a signal of ours that waits because the calling thread blocks it. True if one waits that is not ours.
bool take_back_waiting();
bool is_own_signal(const siginfo_t &info);

} // namespace assay::upcall
