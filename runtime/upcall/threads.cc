// Threads, and what interrupts them. Each opens a perf event that sends it a signal while it runs
// its own code, or, where perf events are closed, makes timers.
//
// The event is kept by a mapping of its first page, and its descriptor is closed at once: so the
// program's descriptors are what they are without us, and closing all of them, as daemons do, ends
// nothing. One event for all threads (`inherit`) was refused: it could not be taken from one thread
// alone, as must be done where the program waits for the signal itself.
//
// Timers of the thread's processor time would do no harm, but tick 250 times a second. Timers of
// real time are exact, and go off in threads that sleep as well. So a thread that is met in a
// system call is left alone until it has used processor time again.
//
// A thread is not told that it ends: what is kept for it is used again when the kernel knows no thread of that number.

#include "runtime/upcall/upcall.h"

#include "abi/records.h"
#include "runtime/core/system/syscall.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

namespace assay::upcall {

thread_local constinit Thread *mine = nullptr;

namespace {

constexpr uint32_t kReserved = UINT32_MAX; // for a thread that does not exist yet
constexpr size_t kGuardBytes = 4096;
constexpr long kPageBytes = 4096;

Thread *all;

// What a new thread runs after us.
struct Start {
  void *run, *argument;
};

struct NewThread {
  Start start;
};

size_t thread_bytes() {
  return kGuardBytes + kStackBytes + ((sizeof(Thread) + sizeof(NewThread) + 4095) & ~size_t{4095});
}
NewThread &new_thread_of(Thread &thread) {
  return *(NewThread *)(&thread + 1);
}

void close_event(Thread &thread) {
  if (thread.event)
    sys::unmap(thread.event, kPageBytes);
  thread.event = nullptr;
}
void delete_timers(Thread &thread) {
  if (!thread.has_timers)
    return;
  thread.has_timers = false;
  sys::call(SYS_timer_delete, thread.timer);
  sys::call(SYS_timer_delete, thread.cpu_timer);
}

// Memory for a thread: that of one that has ended, or new.
Thread *claim_thread(uint32_t tid) {
  unsigned looked_at = 0;
  for (Thread *each = __atomic_load_n(&all, __ATOMIC_ACQUIRE); each && looked_at < 64;
       each = each->next, looked_at++) {
    uint32_t owner = __atomic_load_n(&each->tid, __ATOMIC_ACQUIRE);
    if (owner == kReserved || (owner != 0 && sys::thread_lives(process, owner)))
      continue;
    if (!__atomic_compare_exchange_n(&each->tid, &owner, tid, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    close_event(*each);
    delete_timers(*each);
    each->slot = nullptr;
    each->is_working = false;
    each->is_masked = each->has_held = false;
    return each;
  }
  const long at = sys::map(nullptr, thread_bytes(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
  if (sys::failed(at))
    return nullptr;
  sys::call(SYS_mprotect, at, (long)kGuardBytes, PROT_NONE);
  auto *thread = (Thread *)((char *)at + kGuardBytes + kStackBytes);
  thread->stack = (char *)at + kGuardBytes;
  thread->tid = tid;
  thread->next = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&all, &thread->next, thread, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE))
    ;
  return thread;
}

assay_upcall_slot *claim_slot(uint32_t tid) {
  for (uint32_t i = 0; i < ASSAY_UPCALL_SLOTS; i++) {
    assay_upcall_slot &slot = shared.slots[i];
    uint32_t free = 0;
    if (__atomic_load_n(&slot.is_claimed, __ATOMIC_RELAXED) != 0 ||
        !__atomic_compare_exchange_n(&slot.is_claimed, &free, 2, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    slot.pid = process;
    slot.tid = tid;
    __atomic_store_n(&slot.is_claimed, 1, __ATOMIC_RELEASE);
    return &slot;
  }
  return nullptr;
}

bool open_event(Thread &thread) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = shared.header->event_type;
  attributes.config = shared.header->event_config;
  attributes.sample_period = shared.header->event_period;
  attributes.freq = shared.header->is_frequency != 0;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.sigtrap = 1;
  attributes.remove_on_exec = 1;
  attributes.sig_data = ASSAY_UPCALL_SIGNAL;
  const long file =
      sys::call(SYS_perf_event_open, (long)&attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (sys::failed(file))
    return false;
  const long at = sys::map(nullptr, kPageBytes, PROT_READ, MAP_SHARED, file);
  sys::close(file);
  if (sys::failed(at))
    return false;
  thread.event = (void *)at;
  return true;
}

bool make_timers(Thread &thread) {
  sigevent how = {};
  how.sigev_notify = SIGEV_THREAD_ID;
  how.sigev_signo = kTimerSignal;
  how.sigev_value.sival_ptr = (void *)ASSAY_UPCALL_SIGNAL;
  how._sigev_un._tid = (int)thread.tid;
  if (sys::failed(sys::call(SYS_timer_create, CLOCK_MONOTONIC, (long)&how, (long)&thread.timer)))
    return false;
  if (sys::failed(sys::call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, (long)&how,
                            (long)&thread.cpu_timer))) {
    sys::call(SYS_timer_delete, thread.timer);
    return false;
  }
  thread.has_timers = true;
  return true;
}

void set_timer(int timer, uint64_t first_ns, uint64_t interval_ns) {
  const itimerspec times = {{(time_t)(interval_ns / 1000000000), (long)(interval_ns % 1000000000)},
                            {(time_t)(first_ns / 1000000000), (long)(first_ns % 1000000000)}};
  sys::call(SYS_timer_settime, timer, 0, (long)&times, 0);
}

// Signals of ours come on a stack of ours, unless the program has set one: what they need may be
// more than is left of the thread's.
void set_stack(Thread &thread) {
  stack_t now = {};
  if (sys::failed(sys::call(SYS_sigaltstack, 0, (long)&now)) || !(now.ss_flags & SS_DISABLE))
    return;
  stack_t ours = {};
  ours.ss_sp = thread.stack;
  ours.ss_size = kStackBytes;
  sys::call(SYS_sigaltstack, (long)&ours, 0);
}

void begin_samples(Thread &thread) {
  thread.slot = claim_slot(thread.tid);
  thread.random = (uint64_t)thread.tid * 0x9e3779b97f4a7c15 ^ (uint64_t)&thread;
  thread.is_working = false;
  set_stack(thread);
  mine = &thread;
  asm volatile("" ::: "memory");
  const bool begins = thread.slot && (is_timer() ? make_timers(thread) : open_event(thread));
  if (!begins)
    __atomic_fetch_add(&shared.news->unsampled_threads, 1, __ATOMIC_RELAXED);
  else if (is_timer())
    go_on(thread);
}

bool may_sample() {
  return shared.header && !is_off && !is_over() && is_in_own_process();
}

Thread *reserve(void *run, void *argument) {
  Thread *thread = may_sample() ? claim_thread(kReserved) : nullptr;
  if (thread)
    new_thread_of(*thread).start = {run, argument};
  return thread;
}

// A thread's first function. The program's own is jumped to, so that nothing of ours stays on its stack.
template <typename Result> Result begin_thread(void *given) {
  Thread &thread = *(Thread *)given;
  const Start start = new_thread_of(thread).start;
  __atomic_store_n(&thread.tid, sys::thread_id(), __ATOMIC_RELEASE);
  begin_masked(thread);
  begin_samples(thread);
  auto run = (Result (*)(void *))start.run;
  [[clang::musttail]] return run(start.argument);
}

// The child has one thread; events and timers are its parent's.
void in_child() {
  if (!shared.header)
    return;
  process = sys::process_id();
  for (Thread *each = all; each; each = each->next) {
    each->event = nullptr; // it was not copied
    each->has_timers = false;
    if (each != mine)
      each->tid = 0;
  }
  if (!mine)
    return;
  mine->tid = sys::thread_id();
  mine->slot = nullptr; // the parent's
  is_off = is_off || !is_known_by_number();
  if (!is_off && !is_over())
    begin_samples(*mine);
}

} // namespace

bool is_in_own_process() {
  return sys::process_id() == process;
}

void sample_thread() {
  if (mine) { // after an exec that failed
    if (may_sample() && !mine->event && !mine->has_timers && mine->slot &&
        (is_timer() ? make_timers(*mine) : open_event(*mine)) && is_timer())
      go_on(*mine);
    return;
  }
  if (Thread *thread = claim_thread(sys::thread_id()))
    begin_samples(*thread);
}

void stop_sampling(Thread &thread) {
  close_event(thread);
  delete_timers(thread);
}

void follow_forks() {
  pthread_atfork(nullptr, nullptr, in_child);
}

void go_on(Thread &thread) {
  set_timer(thread.timer, shared.header->period_ns, shared.header->period_ns);
}

void wait_for_work(Thread &thread) {
  constexpr uint64_t kWorkNs = 1'000'000;
  set_timer(thread.timer, 0, 0);
  set_timer(thread.cpu_timer, kWorkNs, 0);
}

} // namespace assay::upcall

using namespace assay::upcall;

ASSAY_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                void *(*run)(void *), void *argument) {
  static decltype(&pthread_create) real;
  real_function(real, "pthread_create");
  Thread *reserved = reserve((void *)run, argument);
  if (!reserved)
    return real(thread, attributes, run, argument);
  const int error = real(thread, attributes, begin_thread<void *>, reserved);
  if (error)
    __atomic_store_n(&reserved->tid, 0, __ATOMIC_RELEASE);
  return error;
}

ASSAY_EXPORT int thrd_create(thrd_t *thread, int (*run)(void *), void *argument) {
  static decltype(&thrd_create) real;
  real_function(real, "thrd_create");
  Thread *reserved = reserve((void *)run, argument);
  if (!reserved)
    return real(thread, run, argument);
  const int error = real(thread, begin_thread<int>, reserved);
  if (error != thrd_success)
    __atomic_store_n(&reserved->tid, 0, __ATOMIC_RELEASE);
  return error;
}
