// Made by a raw clone and not by pthread_create: a pthread would push glibc off its single-threaded
// fast paths (stdio, malloc, atomics) and appear in the program's own counts. Such a thread may not
// call libc; it needs a TLS block of its own all the same, because the runtime's thread_local
// variables are reached through the fs register. All its signals are blocked, so that none of the
// program's is delivered to it. It has a table of descriptors of its own (core/system/own_files.h).
//
// It must not keep the process: a program whose last thread ends by the system call exit (all that strict
// seccomp allows) has ended. The kernel tells nobody, so the helper looks a few times a second.

#include "runtime/core/system/helper_thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/clock.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/own_files.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

constexpr size_t kStackBytes = 256 << 10;

constexpr uint64_t kCheckUs = 200'000; // between looks whether the program has ended

// Who stops the helper while it is asleep need not wait for it: it does nothing more when it wakes.
enum : uint32_t { kAwake, kAsleep, kStopped };

struct {
  uint64_t (*work)();
  uint64_t rounds;     // of work that it has done
  uint64_t first_wait; // microseconds
  void (*program_ended)();
  void (*last_work)();     // of end_on_helper_thread()
  const int *first_thread; // its id, which the kernel sets to 0 at its end; null if not known
  uint8_t *stack;
  uint8_t *tls;
  uint32_t stop;  // futex
  uint32_t state; // kAwake, …
  bool dump_wanted;
  uint32_t running; // futex: 1 while the thread exists; the kernel clears it at its end
} constinit helper = {};

// What /proc/self/stat says: "PID (NAME) STATE …", of which the name may hold any character. The 18th field from the
// state on is the number of threads, the 50th the first thread's status in the form of wait.
struct ProcessState {
  bool known, first_thread_ended;
  uint64_t threads, status;
};

ProcessState read_process_state() {
  char text[512];
  long file = stat_file.descriptor();
  long n = file < 0 ? 0 : sys::call(SYS_pread64, file, (long)text, sizeof text - 1, 0);
  if (n <= 0)
    return {};
  text[n] = 0;
  long at = n;
  while (at > 0 && text[at - 1] != ')')
    at--;
  ProcessState state = {true, text[at] && text[at + 1] == 'Z', 0, 0};
  for (int field = 0; text[at] && text[at] != '\n'; at++) {
    if (text[at] == ' ') {
      field++;
      continue;
    }
    uint64_t digit = (uint64_t)(text[at] - '0');
    if (field == 18)
      state.threads = state.threads * 10 + digit;
    if (field == 50)
      state.status = state.status * 10 + digit;
  }
  return state;
}

// Where there is no /proc, it is known of programs of a single thread only. The status of a process is that of its
// last thread, which must be the program's.
bool has_program_ended(int &exit_status) {
  ProcessState state = read_process_state();
  exit_status = (int)(state.status >> 8 & 255);
  if (state.known)
    return state.first_thread_ended && state.threads == 2; // the zombie, and this one
  return helper.first_thread && __atomic_load_n(helper.first_thread, __ATOMIC_RELAXED) == 0 &&
         single_threaded();
}

// False if it was stopped meanwhile, and is nobody's any more.
bool wait_asleep(uint64_t us) {
  sys::futex_wait(&helper.stop, 0, us * 1000);
  uint32_t asleep = kAsleep;
  return __atomic_compare_exchange_n(&helper.state, &asleep, kAwake, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

bool sleep(uint64_t us) {
  __atomic_store_n(&helper.state, kAsleep, __ATOMIC_RELEASE);
  return wait_asleep(us);
}

// It has what the thread had that made it.
void be_allowed_to_read_counter() {
  if (has_given_kept_time())
    sys::call(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE);
}

int run_work() {
  int exit_status = 0;
  if (helper.first_wait && !wait_asleep(helper.first_wait))
    return exit_status;
  be_allowed_to_read_counter();
  leave_descriptor_table();
  if (this_thread.has_own_table)
    open_proc_files();
  while (!__atomic_load_n(&helper.stop, __ATOMIC_ACQUIRE)) {
    uint64_t wait = helper.work();
    __atomic_fetch_add(&helper.rounds, 1, __ATOMIC_RELEASE);
    if (!sleep(wait < kCheckUs ? wait : kCheckUs))
      break;
    if (has_program_ended(exit_status)) {
      helper.program_ended();
      break;
    }
  }
  if (auto *last = __atomic_load_n(&helper.last_work, __ATOMIC_ACQUIRE))
    last();
  return exit_status;
}

[[noreturn]] void run_helper() {
  this_thread.busy = 1;
  this_thread.is_helper = true;
  this_thread.has_own_table = false;
  int exit_status = run_work();
  for (;;)
    sys::call(SYS_exit, exit_status);
}

void wait_for_end() {
  while (uint32_t running = __atomic_load_n(&helper.running, __ATOMIC_ACQUIRE))
    sys::call(SYS_futex, (long)&helper.running,
              0 /* FUTEX_WAIT: the kernel's wake is not private */, running, 0);
}

bool prepare() {
  if (helper.tls)
    return true;
  // The block must reach down to our own variable, however large the program's TLS is, and to those
  // of libraries that are preloaded: `assay trace` logs what this thread does as well.
  constexpr uint64_t kOthers = 64 << 10;
  uint64_t below = sys::thread_pointer() - (uint64_t)&this_thread;
  below = page_up(below + kOthers);
  helper.stack = (uint8_t *)reserve(kStackBytes);
  uint8_t *block = (uint8_t *)reserve(below + kPage);
  if (!helper.stack || !block)
    return false;
  helper.tls = block + below;
  *(void **)helper.tls = helper.tls; // the thread pointer finds itself at fs:0
  return true;
}

} // namespace

void start_helper_thread(uint64_t (*work)(), void (*program_ended)(), uint64_t first_wait_us) {
  constexpr int kGetTidAddress = 40; // PR_GET_TID_ADDRESS
  end_helper_thread(); // one that was stopped in its sleep, before an exec that failed
  helper.first_wait = first_wait_us;
  helper.state = first_wait_us ? kAsleep : kAwake;
  helper.work = work;
  helper.program_ended = program_ended;
  helper.first_thread = nullptr;
  if (sys::thread_id() == sys::process_id())
    sys::call(SYS_prctl, kGetTidAddress, (long)&helper.first_thread);
  helper.stop = 0;
  helper.last_work = nullptr;
  if (!prepare()) {
    count_loss(ASSAY_LOSS_no_sideline, 1);
    return;
  }
  uint64_t all = ~0ULL, before;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8);
  helper.running = 1;
  // Without CLONE_FS: the root folder stays when the program leaves it, and the program can enter another mount
  // namespace, which takes that nobody shares its own.
  long flags = CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
               CLONE_SETTLS | CLONE_CHILD_CLEARTID;
  uint8_t *top = helper.stack + kStackBytes - 64;
  long result;
  register long r10 asm("r10") = (long)&helper.running;
  register long r8 asm("r8") = (long)helper.tls;
  // The new thread starts on an empty stack: it must leave by a jump, not by a return.
  asm volatile("syscall\n\t"
               "test %%eax, %%eax\n\t"
               "jnz 1f\n\t"
               "xor %%ebp, %%ebp\n\t"
               "call *%[run]\n\t"
               "ud2\n"
               "1:"
               : "=a"(result)
               : "a"(SYS_clone), "D"(flags), "S"(top), "d"(0), "r"(r10),
                 "r"(r8), [run] "b"(&run_helper)
               : "rcx", "r11", "memory", "cc");
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8);
  if (sys::failed(result)) {
    helper.running = 0;
    count_loss(ASSAY_LOSS_no_sideline, 1);
  }
}

void stop_helper_thread() {
  if (this_thread.is_helper)
    return;
  __atomic_store_n(&helper.stop, 1, __ATOMIC_RELEASE);
  uint32_t asleep = kAsleep;
  if (__atomic_compare_exchange_n(&helper.state, &asleep, kStopped, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED))
    return;
  sys::futex_wake(&helper.stop);
  wait_for_end();
}

void end_helper_thread() {
  stop_helper_thread();
  sys::futex_wake(&helper.stop); // it may sleep on
  wait_for_end();
}

bool end_on_helper_thread(void (*work)()) {
  if (this_thread.is_helper || !__atomic_load_n(&helper.running, __ATOMIC_ACQUIRE))
    return false;
  __atomic_store_n(&helper.last_work, work, __ATOMIC_RELEASE);
  __atomic_store_n(&helper.stop, 1, __ATOMIC_RELEASE);
  sys::futex_wake(&helper.stop);
  wait_for_end();
  return true;
}

void request_dump() {
  __atomic_store_n(&helper.dump_wanted, true, __ATOMIC_RELEASE);
  sys::futex_wake(&helper.stop); // it looks at stop again, finds 0 and works
}

void dump_by_helper(uint64_t longest_ms) {
  if (this_thread.is_helper || !__atomic_load_n(&helper.running, __ATOMIC_ACQUIRE))
    return;
  // One round may be under way, and have looked for requests already.
  const uint64_t before = __atomic_load_n(&helper.rounds, __ATOMIC_ACQUIRE);
  const uint64_t enough = before + 2;
  request_dump();
  for (uint64_t ms = 0;
       ms < longest_ms && __atomic_load_n(&helper.rounds, __ATOMIC_ACQUIRE) < enough; ms++) {
    sys::sleep_ns(1'000'000);
    sys::futex_wake(&helper.stop);
  }
}

bool take_dump_request() {
  return __atomic_exchange_n(&helper.dump_wanted, false, __ATOMIC_ACQ_REL);
}

static void reset_helper_in_child() {
  helper.running = 0;
  helper.stop = 0;
  helper.last_work = nullptr;
}
ASSAY_RESET_IN_CHILD(reset_helper_in_child);

} // namespace assay
