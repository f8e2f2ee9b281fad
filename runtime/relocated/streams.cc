// Streams of threads. A thread begins without one: its position is in a scratch area whose limit is null, so the first check in
// moved code comes here. Code that logs before it (what a new thread executes of libc before its first function) writes
// into the scratch area, which nobody reads. A thread that was made without libc may have zeros for all of this: they mean the same, and
// moved code checks behind each system call.
//
// What thread-local storage says may be of another thread: a child of fork has a copy of its parent's, and who makes threads without libc may
// use a block again. So moved code asks behind each system call that may have made a thread or a process (begun()); a child that shares memory with
// its parent, which waits (vfork), goes on logging as its parent.
//
// A thread is not told that it ends: the tool sees that it is gone, and reads what its last buffer holds. That way
// nothing runs in the program when a thread exits, and a killed process loses nothing.

#include "runtime/relocated/from_moved_code.h"
#include "runtime/relocated/relocated.h"
#include "runtime/relocated/sandbox.h"

#include "runtime/core/system/syscall.h"

#include <stddef.h>

namespace assay::relocated {

uint32_t program_number;
uint32_t pid_namespace;

namespace {

constexpr uint32_t kNoStream = UINT32_MAX;
constexpr int kLogs = 2;

uint32_t process;        // whose memory this is
uint32_t forks;          // from the first process to this one
uint32_t *is_own_memory; // the kernel sets it to 0 in a child that has a copy of the memory
uint32_t always_own = 1; // where the kernel does not

// Twice: nobody checks for up to the slack behind a limit.
alignas(64) char scratch[2 * ASSAY_RING_SLACK];

} // namespace

constinit thread_local AssayThreadLog thread_log = {
    {scratch, nullptr, nullptr}, {scratch, nullptr, nullptr}, {}, 0, 0};

namespace {

struct ThreadStreams {
  uint32_t after_stream[kLogs] = {}; // the stream plus 1; 0: it has none
  uint32_t gate[kLogs] = {};         // what it was when the stream began
  uint32_t process = 0, thread = 0;  // whose streams these are; 0: nobody's yet
  bool in_handler = false;
  bool is_paused = false;                 // what it executes is ours
  bool is_counted_untraced = false;       // it found no stream
  uint32_t parent[kLogs] = {};            // number of the stream that the handler interrupted
  uint64_t parent_bytes[kLogs] = {};      // logged there
  uint32_t after_interrupted[kLogs] = {}; // the stream that a handler interrupted last, plus 1
  uint64_t ending_below = 0; // the frame of a handler's begin that is at it; 0: none is
};

[[gnu::tls_model("initial-exec")]] thread_local constinit ThreadStreams mine = {};
[[gnu::tls_model("initial-exec")]] thread_local constinit SavedLog at_fork = {};

uint32_t stream_of(int log) {
  return mine.after_stream[log] - 1; // kNoStream, if it has none
}
void set_stream(int log, uint32_t stream) {
  mine.after_stream[log] = stream + 1;
}

AssayLogPosition &position(AssayThreadLog &of, int log) {
  return log == 0 ? of.groups : of.accesses;
}
AssayLogPosition &position(int log) {
  return position(thread_log, log);
}

uint64_t now_ns() {
  return is_sandboxed() ? __atomic_load_n(&ring->now_ns, __ATOMIC_RELAXED)
                        : sys::clock_ns(CLOCK_MONOTONIC);
}

char *buffer_at(uint32_t stream, uint32_t buffer) {
  return (char *)ring + assay_ring_buffer(stream, buffer);
}

// The number of the namespace that process ids are of, from "pid:[NUMBER]"; 0: it is not known.
uint32_t find_pid_namespace() {
  char text[32];
  const long size = sys::read_link("/proc/self/ns/pid", text, sizeof text);
  uint32_t number = 0;
  for (long i = 0; i < size; i++)
    if (text[i] >= '0' && text[i] <= '9')
      number = number * 10 + (uint32_t)(text[i] - '0');
  return number;
}

void forget_streams() {
  mine = {};
  for (int log = 0; log < kLogs; log++)
    position(log) = {scratch, nullptr, nullptr};
}

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

bool is_copy() {
  return __atomic_load_n(is_own_memory, __ATOMIC_ACQUIRE) == 0;
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
    uint32_t expected = ASSAY_STREAM_free;
    if (__atomic_compare_exchange_n(&ring->all[i].kind, &expected, claimed, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return i;
  }
  return kNoStream;
}

// One that is free, or becomes free when the tool looks for threads that have ended: it looks now and then only, and thousands of
// processes may have come and gone since. It may have been about to look past them: so twice.
uint32_t claim_or_wait() {
  uint32_t stream = claim();
  for (int looks = 0; looks < 2 && stream == kNoStream; looks++) {
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
  return !(__atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE) & 1) && !mine.is_paused &&
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
  asm("mov %%fs:0, %0" : "=r"(to.fs));
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

// The position may lie in the buffer before the one that comes next: a handler interrupts next_buffer() as well.
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

// Ends it with so many bytes, by bytes_of(). It may be another thread's from then on.
void end_stream(AssayRingStream &stream, uint64_t logged) {
  const uint64_t handed_over = (uint64_t)stream.filled * ASSAY_RING_BUFFER_BYTES;
  if (logged > handed_over) // else the buffer that comes next was not begun
    stream.buffers[stream.filled % ASSAY_RING_BUFFERS].bytes = (uint32_t)(logged - handed_over);
  __atomic_store_n(&stream.ended, stream.number + 1, __ATOMIC_RELEASE);
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
  uint64_t fs;
  asm("mov %%fs:0, %0" : "=r"(fs));
  return (uint64_t)&thread_log - fs;
}

void begin_streams() {
  constexpr int kWipeOnFork = 18; // MADV_WIPEONFORK
  const uint32_t id = begin_under_filters();
  if (!id)
    sys::advise(ring, ASSAY_RING_BYTES, MADV_DONTDUMP);
  const long page = sys::map(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  is_own_memory = &always_own;
  if (!id && !sys::failed(page) && !sys::failed(sys::advise((void *)page, 4096, kWipeOnFork)))
    is_own_memory = (uint32_t *)page;
  *is_own_memory = 1;
  process = id ? id : sys::process_id();
  pid_namespace = id ? ring->pid_namespace : find_pid_namespace();
  program_number = __atomic_add_fetch(&ring->programs, 1, __ATOMIC_RELAXED);
  // Streams of the program that executed this one. Their places may be free again at any time: the number is read before what it belongs to, which
  // is set before it.
  for (AssayRingStream &each : ring->all) {
    const uint32_t number = __atomic_load_n(&each.number, __ATOMIC_ACQUIRE);
    const uint32_t kind = __atomic_load_n(&each.kind, __ATOMIC_ACQUIRE);
    if (kind != ASSAY_STREAM_free && !(kind & ASSAY_RING_CLAIMED) && each.process == process &&
        each.pid_namespace == pid_namespace)
      __atomic_store_n(&each.ended, number + 1, __ATOMIC_RELEASE);
  }
}

// From another namespace of processes it cannot be seen: then it is taken to be gone after so many waits for it.
static bool is_tool_gone(uint32_t waits) {
  constexpr uint32_t kMaxWaits = 3000; // of a tenth of a second
  if (ring->pid_namespace != pid_namespace)
    return waits > kMaxWaits;
  return sys::call(SYS_kill, ring->tool, 0) == -3 /* ESRCH */;
}

uint32_t own_process() {
  return is_sandboxed() ? process : sys::process_id();
}

void wake_all(const uint32_t &word) {
  // Other processes wait and wake too: not the private kind.
  if (!is_sandboxed())
    sys::call(SYS_futex, (long)&word, 1 /* FUTEX_WAKE */, INT32_MAX);
}

void tell_tool() {
  __atomic_fetch_add(&ring->news, 1, __ATOMIC_RELEASE);
  wake_all(ring->news);
}

// Where no system call may be made. A pause takes 10 to 140 cycles.
static void spin(const uint32_t &word, uint32_t seen) {
  constexpr uint32_t kMax = UINT32_MAX; // without a sign of the tool: half a minute or more
  uint32_t turns = __atomic_load_n(&ring->turns, __ATOMIC_ACQUIRE);
  for (uint32_t pauses = 0; __atomic_load_n(&word, __ATOMIC_ACQUIRE) == seen &&
                            !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
       pauses++) {
    const uint32_t now = __atomic_load_n(&ring->turns, __ATOMIC_ACQUIRE);
    if (now != turns)
      pauses = 0;
    else if (pauses == kMax)
      __atomic_store_n(&ring->stopped, 1, __ATOMIC_RELEASE);
    turns = now;
    __builtin_ia32_pause();
  }
}

bool wait_for_tool(const uint32_t &word, uint32_t seen, uint32_t &waits) {
  if (is_sandboxed()) {
    spin(word, seen);
    return !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
  }
  const timespec t = {0, 100'000'000};
  const long waited = sys::call(SYS_futex, (long)&word, 0 /* FUTEX_WAIT */, seen, (long)&t);
  if (waited == -110 /* ETIMEDOUT */ && is_tool_gone(++waits))
    __atomic_store_n(&ring->stopped, 1, __ATOMIC_RELEASE);
  return !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
}

namespace {

// Streams that handlers have interrupted, by their place in the ring; the latest of the thread first. A handler that is left by a jump does not
// give back what it has interrupted: that ends when its frame is found to be gone. What the thread does behind the jump is logged on in the
// stream of that handler.
//
// A frame is gone for sure where a later one lies over it, or the kernel takes the alternate stack for unused. One that lies below what a later signal has
// interrupted is gone if it is of the same stack, which cannot be known: handlers may change from one stack to another, and come back. So only where
// many have come together it is taken to be; if it then comes back, what it goes on with is not logged (end_handler).
struct Interrupted {
  uint64_t frame;  // address of SavedLog
  uint64_t logged; // bytes of the stream
  uint32_t after_outer;
};
Interrupted interrupted_streams[ASSAY_RING_STREAMS];
constexpr uint32_t kManyInterrupted = 32; // of one thread

struct Range {
  uint64_t begin, end;
  bool contains(uint64_t address) const { return address - begin < end - begin; }
};

class GoneFrames {
public:
  GoneFrames(const SavedLog &latest, const ucontext_t &context)
      : below_((uint64_t)context.uc_mcontext.gregs[REG_RSP]), over_{(uint64_t)&latest, below_} {
    const auto alternate = (uint64_t)context.uc_stack.ss_sp;
    if (!(context.uc_stack.ss_flags & SS_DISABLE))
      alternate_ = {alternate, alternate + context.uc_stack.ss_size};
    if (alternate_.contains((uint64_t)&latest) && !alternate_.contains(below_))
      over_ = alternate_;
  }
  bool has(uint64_t frame, bool are_many) const {
    if (frame < over_.end && frame + sizeof(SavedLog) > over_.begin)
      return true;
    return are_many && frame < below_ && alternate_.contains(frame) == alternate_.contains(below_);
  }

private:
  uint64_t below_; // what was interrupted
  Range over_;     // of the latest frame
  Range alternate_ = {0, 0};
};

// Ends the interrupted streams that are not gone on with.
void end_left_streams(int log, const GoneFrames &gone) {
  uint32_t count = 0;
  for (uint32_t at = mine.after_interrupted[log]; at; at = interrupted_streams[at - 1].after_outer)
    count++;
  bool any = false;
  for (uint32_t *link = &mine.after_interrupted[log]; *link;) {
    const uint32_t stream = *link - 1;
    const Interrupted &each = interrupted_streams[stream];
    if (!gone.has(each.frame, count > kManyInterrupted)) {
      link = &interrupted_streams[stream].after_outer;
      continue;
    }
    *link = each.after_outer;
    end_stream(ring->all[stream], each.logged);
    any = true;
  }
  if (any)
    tell_tool();
}

void set_interrupted(int log, const SavedLog &by, uint64_t logged) {
  const uint32_t stream = by.streams[log];
  if (stream == kNoStream)
    return;
  interrupted_streams[stream] = {(uint64_t)&by, logged, mine.after_interrupted[log]};
  mine.after_interrupted[log] = stream + 1;
}

// False: it has ended meanwhile.
bool take_interrupted(int log, const SavedLog &by) {
  const uint32_t stream = by.streams[log];
  for (uint32_t *link = &mine.after_interrupted[log]; *link;
       link = &interrupted_streams[*link - 1].after_outer)
    if (*link == stream + 1 && interrupted_streams[stream].frame == (uint64_t)&by) {
      *link = interrupted_streams[stream].after_outer;
      return true;
    }
  return false;
}

void set_aside(SavedLog &saved) {
  saved.log = thread_log;
  saved.forks = forks;
  saved.in_handler = mine.in_handler;
  saved.is_paused = mine.is_paused;
  mine.is_paused = false;
  for (int log = 0; log < kLogs; log++) {
    saved.streams[log] = stream_of(log);
    saved.parent[log] = mine.parent[log];
    saved.parent_bytes[log] = mine.parent_bytes[log];
    // A handler of a handler that has logged nothing yet stands where that one does.
    if (stream_of(log) != kNoStream || !mine.in_handler) {
      mine.parent[log] = stream_of(log) == kNoStream ? kNoStream : ring->all[stream_of(log)].number;
      mine.parent_bytes[log] = bytes_of(log);
    }
    set_stream(log, kNoStream);
    position(log) = {scratch, nullptr, nullptr};
  }
  mine.in_handler = true;
}

} // namespace

void begin_handler(SavedLog &saved, const ucontext_t &interrupted) {
  if (is_copy())
    begin_process();
  // A handler may interrupt this here, below.
  if (!mine.ending_below || (uint64_t)&saved > mine.ending_below) {
    mine.ending_below = (uint64_t)&saved;
    const GoneFrames gone(saved, interrupted);
    for (int log = 0; log < kLogs; log++)
      end_left_streams(log, gone);
    mine.ending_below = 0;
  }
  // A stream of the thread is never in the list, also where another handler interrupts this.
  set_aside(saved);
  for (int log = 0; log < kLogs; log++)
    set_interrupted(log, saved, mine.parent_bytes[log]);
}

void stop_logging(SavedLog &saved) {
  set_aside(saved);
  mine.is_paused = true;
  for (int log = 0; log < kLogs; log++)
    go_untraced(log);
}

void go_on_logging(const SavedLog &saved) {
  thread_log = saved.log;
  if (saved.forks != forks) { // this process was made meanwhile: the streams are its parent's
    forget_streams();
    return;
  }
  mine.in_handler = saved.in_handler;
  mine.is_paused = saved.is_paused;
  for (int log = 0; log < kLogs; log++) {
    mine.parent[log] = saved.parent[log];
    mine.parent_bytes[log] = saved.parent_bytes[log];
    set_stream(log, saved.streams[log]);
  }
}

namespace {

// Ends the thread's stream, if it has one, with what it has logged.
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

} // namespace

void end_handler(SavedLog &saved, ucontext_t &interrupted) {
  for (int log = 0; log < kLogs; log++)
    end_own_stream(log);
  for (int log = 0; log < kLogs && saved.forks == forks; log++) {
    const uint32_t stream = saved.streams[log];
    if (stream == kNoStream || take_interrupted(log, saved))
      continue;
    // It was taken to be left, and may be another thread's. A register may hold where it would log.
    saved.streams[log] = kNoStream;
    position(saved.log, log) = {scratch, nullptr, nullptr};
    const uint64_t begin = (uint64_t)buffer_at(stream, 0);
    for (greg_t &each : interrupted.uc_mcontext.gregs)
      if ((uint64_t)each - begin <= ASSAY_RING_BUFFERS * ASSAY_RING_BUFFER_BYTES)
        each = (greg_t)scratch;
  }
  go_on_logging(saved);
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
