// Streams of threads. A thread begins without one: its position is in a scratch area whose limit is
// null, so the first check in moved code comes here. Code that logs before it (what a new thread
// executes of libc before its first function) writes into the scratch area, which nobody reads. A
// thread that was made without libc may have zeros for all of this: they mean the same, and moved
// code checks behind each system call.
//
// What thread-local storage says may be of another thread: a child of fork has a copy of its
// parent's, and who makes threads without libc may use a block again. So moved code asks behind
// each system call that may have made a thread or a process (begun()); a child that shares memory
// with its parent, which waits (vfork), goes on logging as its parent.
//
// A thread is not told that it ends: the tool sees that it is gone, and reads what its last buffer holds. That way
// nothing runs in the program when a thread exits, and a killed process loses nothing.

#include "runtime/relocated/from_moved_code.h"
#include "runtime/relocated/sandbox.h"
#include "runtime/relocated/thread_streams.h"

#include "abi/proc_text.h"
#include "runtime/core/system/syscall.h"

namespace assay::relocated {

uint32_t program_number;
uint32_t pid_namespace;
uint32_t forks;
alignas(64) char scratch[2 * ASSAY_RING_SLACK];

namespace {

uint32_t process;        // whose memory this is
uint32_t *is_own_memory; // the kernel sets it to 0 in a child that has a copy of the memory
uint32_t always_own = 1; // where the kernel does not

} // namespace

constinit thread_local AssayThreadLog thread_log = {
    {scratch, nullptr, nullptr}, {scratch, nullptr, nullptr}, {}, 0, 0};

constinit thread_local ThreadStreams mine = {};

namespace {

uint64_t now_ns() {
  return is_sandboxed() ? __atomic_load_n(&ring->now_ns, __ATOMIC_RELAXED)
                        : sys::clock_ns(CLOCK_MONOTONIC);
}

// 0: it is not known.
uint32_t find_pid_namespace() {
  char text[32];
  const long size = sys::read_link("/proc/self/ns/pid", text, sizeof text - 1);
  text[size < 0 ? 0 : size] = 0;
  return assay_namespace_in(text);
}

} // namespace

bool is_copy() {
  return __atomic_load_n(is_own_memory, __ATOMIC_ACQUIRE) == 0;
}

void forget_streams() {
  mine = {};
  for (int log = 0; log < kLogs; log++)
    position(log) = {scratch, nullptr, nullptr};
}

// A child of fork: the buffers that its memory names are its parent's.
void begin_process() {
  *is_own_memory = 1;
  forks++;
  if (!is_sandboxed()) {
    process = sys::process_id();
    pid_namespace = find_pid_namespace();
  } else if (const uint32_t id = thread_id_without_call()) {
    process = id; // of its first thread
  }
  forget_streams();
}

void go_untraced(int log) {
  position(log) = {scratch, scratch + ASSAY_RING_SLACK, scratch + ASSAY_RING_SLACK};
}

uint64_t bytes_of(int log) {
  const uint32_t stream = stream_of(log);
  if (stream == kNoStream)
    return 0;
  const auto offset = (uint64_t)(position(log).at - buffer_at(stream, 0));
  if (offset > ASSAY_RING_BUFFERS * ASSAY_RING_BUFFER_BYTES) // it is in the scratch area
    return 0;
  const uint32_t filled = ring->all[stream].filled;
  const auto buffer = (uint32_t)(offset / ASSAY_RING_BUFFER_BYTES);
  const uint32_t before = filled - (filled - buffer) % ASSAY_RING_BUFFERS;
  return (uint64_t)before * ASSAY_RING_BUFFER_BYTES + offset % ASSAY_RING_BUFFER_BYTES;
}

void end_stream(AssayRingStream &stream, uint64_t logged) {
  const uint64_t handed_over = (uint64_t)stream.filled * ASSAY_RING_BUFFER_BYTES;
  if (logged > handed_over) // else the buffer that comes next was not begun
    stream.buffers[stream.filled % ASSAY_RING_BUFFERS].bytes = (uint32_t)(logged - handed_over);
  __atomic_store_n(&stream.ended, stream.number + 1, __ATOMIC_RELEASE);
}

void end_own_stream(int log) {
  const uint32_t stream = stream_of(log);
  if (stream == kNoStream)
    return;
  const uint64_t logged = bytes_of(log);
  set_stream(log, kNoStream);
  go_untraced(log);
  end_stream(ring->all[stream], logged);
  tell_tool();
}

namespace {

void know_thread() {
  mine.process = own_process();
  mine.thread = is_sandboxed() ? thread_id_without_call() : sys::thread_id();
  if (!mine.thread) // its streams last as long as the process
    mine.thread = mine.process;
}

// Whether what thread-local storage says is of a thread that was here before.
bool is_another() {
  if (!mine.thread)
    return false;
  if (is_sandboxed()) {
    const uint32_t thread = thread_id_without_call();
    return thread && thread != mine.thread;
  }
  return mine.thread != sys::thread_id() && sys::process_id() == process;
}

void begin_buffer(int log, uint32_t stream, uint32_t buffer) {
  AssayRingStream &to = ring->all[stream];
  AssayRingBuffer &next = to.buffers[buffer % ASSAY_RING_BUFFERS];
  char *begin = buffer_at(stream, buffer);
  // What it held is told from what is logged there by nothing but zeros.
  if (uint64_t bytes = __atomic_load_n(&next.stale_bytes, __ATOMIC_ACQUIRE)) {
    char *at = begin;
    asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory");
  }
  next.begin_ns = now_ns();
  next.end_ns = 0;
  next.bytes = 0;
  __atomic_store_n(&next.stale_bytes, 0, __ATOMIC_RELEASE);
  char *limit = begin + ASSAY_RING_BUFFER_BYTES - ASSAY_RING_SLACK;
  position(log) = {begin, limit, limit};
}

uint32_t claim() {
  const uint32_t claimed =
      ASSAY_RING_CLAIMED | (pid_namespace == ring->pid_namespace ? mine.thread : 0);
  for (uint32_t i = 0; i < ASSAY_RING_STREAMS; i++) {
    uint32_t &kind = ring->all[i].kind;
    uint32_t expected = __atomic_load_n(&kind, __ATOMIC_RELAXED); // does not take others' lines
    if (expected == ASSAY_STREAM_free &&
        __atomic_compare_exchange_n(&kind, &expected, claimed, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return i;
  }
  return kNoStream;
}

// One that is free, or becomes free when the tool looks for threads that have ended: it looks now
// and then only, and thousands of processes may have come and gone since. What it frees may be taken by others who
// wait, as where dozens of threads run handlers: so it is asked again, as long as others find one.
uint32_t claim_or_wait() {
  constexpr int kLooks = 2, kMaxLooks = 64; // as long as streams begin
  uint32_t stream = claim(), begun = 0;
  for (int looks = 0; looks < kMaxLooks && stream == kNoStream; looks++) {
    const uint32_t before = begun;
    begun = __atomic_load_n(&ring->streams, __ATOMIC_RELAXED);
    if (looks >= kLooks && begun == before)
      break;
    const uint32_t seen = __atomic_load_n(&ring->looks, __ATOMIC_ACQUIRE);
    __atomic_fetch_add(&ring->wanted, 1, __ATOMIC_RELEASE);
    tell_tool();
    for (uint32_t waits = 0; __atomic_load_n(&ring->looks, __ATOMIC_ACQUIRE) == seen;)
      if (!wait_for_tool(ring->looks, seen, waits))
        return kNoStream;
    stream = claim();
  }
  return stream;
}

bool may_log() {
  return assay_gate_is_open(__atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE)) && !mine.is_paused &&
         !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
}

void begin_stream(int log) {
  const uint32_t gate = __atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE);
  if (!may_log()) {
    go_untraced(log);
    return;
  }
  const uint32_t stream = mine.is_counted_untraced ? claim() : claim_or_wait();
  if (stream == kNoStream) {
    if (!mine.is_counted_untraced)
      __atomic_fetch_add(&ring->untraced_threads, 1, __ATOMIC_RELAXED);
    mine.is_counted_untraced = true;
    go_untraced(log);
    return;
  }
  mine.gate[log] = gate;
  AssayRingStream &to = ring->all[stream];
  to.process = mine.process;
  to.thread = mine.thread;
  to.pid_namespace = pid_namespace;
  to.program = program_number;
  to.number = __atomic_fetch_add(&ring->streams, 1, __ATOMIC_RELAXED);
  to.parent = mine.parent[log];
  to.parent_bytes = mine.parent_bytes[log];
  to.pair = log == 0 || stream_of(0) == kNoStream ? to.number : ring->all[stream_of(0)].number;
  to.ended = 0;
  to.filled = to.freed = 0;
  to.fs = sys::thread_pointer();
  to.position = (uint64_t)&position(log);
  to.data = (uint64_t)buffer_at(stream, 0);
  begin_buffer(log, stream, 0);
  const uint32_t kind =
      log == 0 ? (mine.in_handler ? ASSAY_STREAM_handler_groups : ASSAY_STREAM_groups)
               : (mine.in_handler ? ASSAY_STREAM_handler_accesses : ASSAY_STREAM_accesses);
  // A handler that comes earlier finds no stream; one that comes later, a whole one.
  asm volatile("" ::: "memory");
  set_stream(log, stream);
  __atomic_store_n(&to.kind, kind, __ATOMIC_RELEASE);
}

// Hands the buffer over, and waits until there is another one.
void next_buffer(int log) {
  const uint32_t stream = stream_of(log);
  AssayRingStream &of = ring->all[stream];
  AssayRingBuffer &full = of.buffers[of.filled % ASSAY_RING_BUFFERS];
  const auto bytes = (uint64_t)(position(log).at - buffer_at(stream, of.filled));
  if (bytes <=
      ASSAY_RING_BUFFER_BYTES) { // else it has been, and a handler that is not ours jumped out of here
    full.bytes = (uint32_t)bytes;
    full.end_ns = now_ns();
    __atomic_fetch_add(&of.filled, 1, __ATOMIC_RELEASE);
  }
  if (mine.gate[log] != __atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE)) {
    set_stream(log, kNoStream);
    go_untraced(log);
    end_stream(of, 0);
    tell_tool();
    return;
  }
  tell_tool();
  bool is_recorded = !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
  for (uint32_t waits = 0; is_recorded;) {
    const uint32_t freed = __atomic_load_n(&of.freed, __ATOMIC_ACQUIRE);
    if (of.filled - freed < ASSAY_RING_BUFFERS)
      break;
    is_recorded = wait_for_tool(of.freed, freed, waits);
  }
  if (!is_recorded) {
    go_untraced(log);
    return;
  }
  begin_buffer(log, stream, of.filled);
}

void make_room(bool may_begin) {
  if (is_copy())
    begin_process();
  if (!mine.thread)
    know_thread();
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

[[gnu::tls_model("initial-exec")]] static thread_local constinit SavedLog at_fork = {};

// The child must not log into the buffer of the parent, which it shares.
void before_fork() {
  stop_logging(at_fork);
}
void after_fork() {
  go_on_logging(at_fork);
}
void in_child() {
  if (is_own_memory == &always_own || is_copy())
    begin_process();
}

// Called by the moved code's checks through assay_check, with all registers saved.
extern "C" [[gnu::visibility("hidden")]] void assay_make_room() {
  make_room(true);
}
// Behind a system call that returned 0: what thread-local storage says may be another thread's.
extern "C" [[gnu::visibility("hidden")]] void assay_thread_begun() {
  if (is_copy())
    begin_process();
  else if (is_another())
    forget_streams();
}
// The same, within what a skeleton computes: no stream can begin with the middle of it.
extern "C" [[gnu::visibility("hidden")]] void assay_make_room_inside() {
  make_room(false);
}

uint64_t log_offset() {
  return (uint64_t)&thread_log - sys::thread_pointer();
}

void begin_streams() {
  const uint32_t id = begin_under_filters();
  if (!id)
    sys::advise(ring, ASSAY_RING_BYTES, MADV_DONTDUMP);
  const long page = sys::map(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  is_own_memory = &always_own;
  if (!id && !sys::failed(page) && !sys::failed(sys::advise((void *)page, 4096, MADV_WIPEONFORK)))
    is_own_memory = (uint32_t *)page;
  *is_own_memory = 1;
  process = id ? id : sys::process_id();
  pid_namespace = id ? ring->pid_namespace : find_pid_namespace();
  program_number = __atomic_add_fetch(&ring->programs, 1, __ATOMIC_RELAXED);
  // Streams of the program that executed this one. Their places may be free again at any time: the
  // number is read before what it belongs to, which is set before it.
  for (AssayRingStream &each : ring->all) {
    const uint32_t number = __atomic_load_n(&each.number, __ATOMIC_ACQUIRE);
    const uint32_t kind = __atomic_load_n(&each.kind, __ATOMIC_ACQUIRE);
    if (kind != ASSAY_STREAM_free && !(kind & ASSAY_RING_CLAIMED) && each.process == process &&
        each.pid_namespace == pid_namespace)
      __atomic_store_n(&each.ended, number + 1, __ATOMIC_RELEASE);
  }
}

uint32_t own_process() {
  return is_sandboxed() ? process : sys::process_id();
}

void follow_gate() {
  if (is_copy())
    begin_process();
  for (int log = 0; log < kLogs; log++)
    if (stream_of(log) == kNoStream ||
        mine.gate[log] != __atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE)) {
      end_own_stream(log);
      position(log) = {scratch, nullptr, nullptr};
    }
}

ASSAY_FROM_MOVED_CODE("assay_check", "assay_make_room");
ASSAY_FROM_MOVED_CODE("assay_check_inside", "assay_make_room_inside");
ASSAY_FROM_MOVED_CODE("assay_begun", "assay_thread_begun");

} // namespace assay::relocated
