// Streams of threads. A thread begins without one: its position is in a scratch area whose limit is null, so the first check in
// moved code comes here. Code that logs before it (what a new thread executes of libc before its first function) writes
// into the scratch area, which nobody reads. A thread that was made without libc may have zeros for all of this: they mean the same, and
// moved code checks behind each system call.
//
// A thread is not told that it ends: the tool sees that it is gone, and reads what its last buffer holds. That way
// nothing runs in the program when a thread exits, and a killed process loses nothing.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/syscall.h"

#include <pthread.h>
#include <stddef.h>

namespace assay::relocated {

uint32_t program_number;

namespace {

constexpr uint32_t kNoStream = UINT32_MAX;
constexpr uint64_t kWaitNs = 100'000'000;
constexpr uint32_t kClaimed = UINT32_MAX; // a stream that is being taken
constexpr int kLogs = 2;

// Twice: nobody checks for up to the slack behind a limit.
alignas(64) char scratch[2 * ASSAY_RING_SLACK];

struct ThreadStreams {
  uint32_t after_stream[kLogs] = {}; // the stream plus 1; 0: it has none
  uint32_t gate[kLogs] = {};         // what it was when the stream began
  bool in_handler = false;
  bool is_paused = false;            // what it executes is ours
  bool is_counted_untraced = false;  // it found no stream
  uint32_t parent[kLogs] = {};       // number of the stream that the handler interrupted
  uint64_t parent_bytes[kLogs] = {}; // logged there
};

[[gnu::tls_model("initial-exec")]] thread_local constinit AssayThreadLog thread_log = {
    {scratch, nullptr, nullptr}, {scratch, nullptr, nullptr}, {}, 0};
[[gnu::tls_model("initial-exec")]] thread_local constinit ThreadStreams mine = {};
[[gnu::tls_model("initial-exec")]] thread_local constinit SavedLog at_fork = {};

uint32_t stream_of(int log) {
  return mine.after_stream[log] - 1; // kNoStream, if it has none
}
void set_stream(int log, uint32_t stream) {
  mine.after_stream[log] = stream + 1;
}

AssayLogPosition &position(int log) {
  return log == 0 ? thread_log.groups : thread_log.accesses;
}

uint64_t now_ns() {
  return sys::clock_ns(CLOCK_MONOTONIC);
}

char *buffer_at(uint32_t stream, uint32_t buffer) {
  return (char *)ring + assay_ring_buffer(stream, buffer);
}

// Other processes wait and wake too: not the private kind.
void wake(uint32_t *word) {
  __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
  sys::call(SYS_futex, (long)word, 1 /* FUTEX_WAKE */, INT32_MAX);
}

bool is_over() {
  return __atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE) ||
         sys::call(SYS_kill, ring->tool, 0) == -3 /* ESRCH */;
}

void go_untraced(int log) {
  position(log) = {scratch, scratch + ASSAY_RING_SLACK, scratch + ASSAY_RING_SLACK};
}

void begin_buffer(int log, uint32_t stream, uint32_t buffer) {
  AssayRingStream &to = ring->all[stream];
  AssayRingBuffer &next = to.buffers[buffer % ASSAY_RING_BUFFERS];
  char *begin = buffer_at(stream, buffer);
  // What it held is told from what is logged there by nothing but zeros.
  if (__atomic_load_n(&next.is_stale, __ATOMIC_ACQUIRE)) {
    char *at = begin;
    uint64_t bytes = ASSAY_RING_BUFFER_BYTES;
    asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory");
  }
  next.begin_ns = now_ns();
  next.end_ns = 0;
  next.bytes = 0;
  __atomic_store_n(&next.is_stale, 0, __ATOMIC_RELEASE);
  char *limit = begin + ASSAY_RING_BUFFER_BYTES - ASSAY_RING_SLACK;
  position(log) = {begin, limit, limit};
}

uint32_t claim() {
  for (uint32_t i = 0; i < ASSAY_RING_STREAMS; i++) {
    uint32_t expected = ASSAY_STREAM_free;
    if (__atomic_compare_exchange_n(&ring->all[i].kind, &expected, kClaimed, false,
                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return i;
  }
  return kNoStream;
}

bool may_log() {
  return !(__atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE) & 1) && !mine.is_paused &&
         !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
}

void begin_stream(int log) {
  const uint32_t gate = __atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE);
  if (!may_log()) {
    go_untraced(log);
    return;
  }
  const uint32_t stream = claim();
  if (stream == kNoStream) {
    if (!mine.is_counted_untraced)
      __atomic_fetch_add(&ring->untraced_threads, 1, __ATOMIC_RELAXED);
    mine.is_counted_untraced = true;
    go_untraced(log);
    return;
  }
  set_stream(log, stream);
  mine.gate[log] = gate;
  AssayRingStream &to = ring->all[stream];
  to.process = sys::process_id();
  to.thread = sys::thread_id();
  to.program = program_number;
  to.number = __atomic_fetch_add(&ring->streams, 1, __ATOMIC_RELAXED);
  to.parent = mine.parent[log];
  to.parent_bytes = mine.parent_bytes[log];
  to.pair = log == 0 || stream_of(0) == kNoStream ? to.number : ring->all[stream_of(0)].number;
  to.ended = 0;
  to.filled = to.freed = 0;
  asm("mov %%fs:0, %0" : "=r"(to.fs));
  begin_buffer(log, stream, 0);
  const uint32_t kind =
      log == 0 ? (mine.in_handler ? ASSAY_STREAM_handler_groups : ASSAY_STREAM_groups)
               : (mine.in_handler ? ASSAY_STREAM_handler_accesses : ASSAY_STREAM_accesses);
  __atomic_store_n(&to.kind, kind, __ATOMIC_RELEASE);
}

uint64_t bytes_of(int log) {
  const uint32_t stream = stream_of(log);
  if (stream == kNoStream)
    return 0;
  const AssayRingStream &of = ring->all[stream];
  return (uint64_t)of.filled * ASSAY_RING_BUFFER_BYTES +
         (uint64_t)(position(log).at - buffer_at(stream, of.filled));
}

// Hands the buffer over, and waits until there is another one.
void next_buffer(int log) {
  const uint32_t stream = stream_of(log);
  AssayRingStream &of = ring->all[stream];
  AssayRingBuffer &full = of.buffers[of.filled % ASSAY_RING_BUFFERS];
  full.bytes = (uint32_t)(position(log).at - buffer_at(stream, of.filled));
  full.end_ns = now_ns();
  __atomic_fetch_add(&of.filled, 1, __ATOMIC_RELEASE);
  if (mine.gate[log] != __atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&of.ended, 1, __ATOMIC_RELEASE);
    wake(&ring->news);
    set_stream(log, kNoStream);
    go_untraced(log);
    return;
  }
  wake(&ring->news);
  for (;;) {
    const uint32_t freed = __atomic_load_n(&of.freed, __ATOMIC_ACQUIRE);
    if (of.filled - freed < ASSAY_RING_BUFFERS)
      break;
    const timespec t = {0, (long)kWaitNs};
    if (sys::call(SYS_futex, (long)&of.freed, 0 /* FUTEX_WAIT */, freed, (long)&t) ==
            -110 /* ETIMEDOUT */
        && is_over()) {
      __atomic_store_n(&ring->stopped, 1, __ATOMIC_RELEASE);
      go_untraced(log);
      return;
    }
    if (__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE)) {
      go_untraced(log);
      return;
    }
  }
  begin_buffer(log, stream, of.filled);
}

// fork: the child must not log into the buffer of the parent, which it shares.
void before_fork() {
  stop_logging(at_fork);
}
void after_fork() {
  go_on_logging(at_fork);
}
void in_child() {
  mine = {};
  for (int log = 0; log < kLogs; log++)
    position(log) = {scratch, nullptr, nullptr};
}

} // namespace

namespace {

void make_room(bool may_begin) {
  for (int log = 0; log < kLogs; log++) {
    if (!(ring->log & 1u << log))
      continue;
    AssayLogPosition &at = position(log);
    if (at.at < (may_begin ? at.start_limit : at.limit))
      continue;
    const bool is_untraced = at.limit == scratch + ASSAY_RING_SLACK;
    if (!is_untraced && stream_of(log) != kNoStream) {
      next_buffer(log);
      if (stream_of(log) != kNoStream)
        continue;
    }
    if (may_begin) {
      begin_stream(log);
    } else {
      position(log).at = scratch;
      if (may_log()) // from the next place on where a stream may begin
        position(log).start_limit = nullptr;
    }
  }
}

} // namespace

// Called by the moved code's checks through assay_check, with all registers saved.
extern "C" [[gnu::visibility("hidden")]] void assay_make_room() {
  make_room(true);
}
// The same, within what a skeleton computes: no stream can begin with the middle of it.
extern "C" [[gnu::visibility("hidden")]] void assay_make_room_inside() {
  make_room(false);
}

uint64_t log_offset() {
  uint64_t fs;
  asm("mov %%fs:0, %0" : "=r"(fs));
  return (uint64_t)&thread_log - fs;
}

void begin_streams() {
  // Of a program that executed this one.
  const uint32_t process = sys::process_id();
  program_number = __atomic_add_fetch(&ring->programs, 1, __ATOMIC_RELAXED);
  for (AssayRingStream &each : ring->all)
    if (each.kind != ASSAY_STREAM_free && each.kind != kClaimed && each.process == process)
      __atomic_store_n(&each.ended, 1, __ATOMIC_RELEASE);
  pthread_atfork(before_fork, after_fork, in_child);
}

void begin_handler(SavedLog &saved) {
  saved.log = thread_log;
  saved.in_handler = mine.in_handler;
  saved.is_paused = mine.is_paused;
  mine.is_paused = false;
  for (int log = 0; log < kLogs; log++) {
    saved.streams[log] = stream_of(log);
    mine.parent[log] = stream_of(log) == kNoStream ? kNoStream : ring->all[stream_of(log)].number;
    mine.parent_bytes[log] = bytes_of(log);
    set_stream(log, kNoStream);
    position(log) = {scratch, nullptr, nullptr};
  }
  mine.in_handler = true;
}

void stop_logging(SavedLog &saved) {
  begin_handler(saved);
  mine.is_paused = true;
  for (int log = 0; log < kLogs; log++)
    go_untraced(log);
}

void go_on_logging(const SavedLog &saved) {
  thread_log = saved.log;
  mine.in_handler = saved.in_handler;
  mine.is_paused = saved.is_paused;
  for (int log = 0; log < kLogs; log++)
    set_stream(log, saved.streams[log]);
}

void end_handler(const SavedLog &saved) {
  for (int log = 0; log < kLogs; log++) {
    if (const uint32_t stream = stream_of(log); stream != kNoStream) {
      AssayRingStream &of = ring->all[stream];
      of.buffers[of.filled % ASSAY_RING_BUFFERS].bytes =
          (uint32_t)(position(log).at - buffer_at(stream, of.filled));
      __atomic_store_n(&of.ended, 1, __ATOMIC_RELEASE);
      wake(&ring->news);
    }
    set_stream(log, saved.streams[log]);
  }
  thread_log = saved.log;
  mine.in_handler = saved.in_handler;
  mine.is_paused = saved.is_paused;
}

// Registers as they were, but for what the moved code's snippet uses itself; on the stack of the program, below its red zone.
#define ASSAY_CHECK(name, made_by)                                                                 \
  asm(".text\n.hidden " name "\n.globl " name "\n.type " name ", @function\n" name ":\n"           \
      "pushfq\n push %rax\n push %rcx\n push %rdx\n push %rbx\n push %rbp\n push %rsi\n"           \
      "push %rdi\n push %r8\n push %r9\n push %r10\n push %r11\n"                                  \
      "mov %rsp, %rbx\n and $-16, %rsp\n cld\n call " made_by "\n mov %rbx, %rsp\n"                \
      "pop %r11\n pop %r10\n pop %r9\n pop %r8\n pop %rdi\n pop %rsi\n pop %rbp\n pop %rbx\n"      \
      "pop %rdx\n pop %rcx\n pop %rax\n popfq\n ret\n.size " name ", . - " name "\n")
ASSAY_CHECK("assay_check", "assay_make_room");
ASSAY_CHECK("assay_check_inside", "assay_make_room_inside");

} // namespace assay::relocated
