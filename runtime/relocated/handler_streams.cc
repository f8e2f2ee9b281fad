// What a signal handler logs goes to streams of its own. What it interrupted is set aside
// meanwhile, and found to be left if the handler does not return.

#include "runtime/relocated/thread_streams.h"

namespace assay::relocated {
namespace {

// Streams that handlers have interrupted, by their place in the ring; the latest of the thread
// first. A handler that is left by a jump does not give back what it has interrupted: that ends
// when its frame is found to be gone. What the thread does behind the jump is logged on in the
// stream of that handler.
//
// A frame is gone for sure where a later one lies over it, or the kernel takes the alternate stack
// for unused. One that lies below what a later signal has interrupted is gone if it is of the same
// stack, which cannot be known: handlers may change from one stack to another, and come back. So
// only where many have come together it is taken to be; if it then comes back, what it goes on with
// is not logged (end_handler).
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

uint32_t *link_to(int log, uint32_t stream) {
  uint32_t *link = &mine.after_interrupted[log];
  while (*link && *link != stream + 1)
    link = &interrupted_streams[*link - 1].after_outer;
  return *link ? link : nullptr;
}

// A handler may interrupt the begin or the end of another one, and come to what that has put into
// the list: it is left there. It may also jump out: so a stream is in the list before it is set
// aside, and until it is gone on with.
void set_interrupted(int log, SavedLog &by) {
  const uint32_t stream = stream_of(log);
  by.is_listed[log] = stream != kNoStream && !link_to(log, stream);
  if (!by.is_listed[log])
    return;
  const Interrupted interrupted = {(uint64_t)&by, bytes_of(log), mine.after_interrupted[log]};
  interrupted_streams[stream] = interrupted;
  mine.after_interrupted[log] = stream + 1;
  asm volatile("" ::: "memory");
  // Again: another handler may have come and gone in between, with the same stream.
  interrupted_streams[stream] = interrupted;
}

// False: it has ended meanwhile.
bool is_interrupted(int log, const SavedLog &by) {
  const uint32_t stream = by.streams[log];
  return link_to(log, stream) &&
         (!by.is_listed[log] || interrupted_streams[stream].frame == (uint64_t)&by);
}

void take_interrupted(int log, const SavedLog &by) {
  const uint32_t stream = by.streams[log];
  if (stream == kNoStream || !by.is_listed[log])
    return;
  uint32_t *link = link_to(log, stream);
  if (link && interrupted_streams[stream].frame == (uint64_t)&by)
    *link = interrupted_streams[stream].after_outer;
}

// Whether a handler that is at ending streams was interrupted here. It has a frame a little further
// out; where it was left by a jump, it has not.
bool is_ending_streams(uint64_t interrupted) {
  constexpr uint64_t kOwnFrames = 4096;
  return mine.ending_frame > interrupted && mine.ending_frame - interrupted < kOwnFrames;
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
  if (!is_ending_streams((uint64_t)interrupted.uc_mcontext.gregs[REG_RSP])) {
    mine.ending_frame = (uint64_t)&saved;
    const GoneFrames gone(saved, interrupted);
    for (int log = 0; log < kLogs; log++)
      end_left_streams(log, gone);
    mine.ending_frame = 0;
  }
  for (int log = 0; log < kLogs; log++)
    set_interrupted(log, saved);
  set_aside(saved);
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

void end_handler(SavedLog &saved, ucontext_t &interrupted) {
  const bool is_same_process = saved.forks == forks;
  for (int log = 0; log < kLogs; log++) {
    const uint32_t stream = saved.streams[log], own = stream_of(log);
    const bool has_any = is_same_process && stream != kNoStream;
    const bool goes_on = has_any && is_interrupted(log, saved);
    // A handler that has logged nothing yet is taken to return, too: if it jumps out, what the
    // thread logs behind that says so.
    const bool goes_to_handler = is_same_process && stream == kNoStream && saved.in_handler;
    const uint32_t parent = goes_to_handler ? saved.parent[log]
                            : goes_on       ? ring->all[stream].number
                                            : kNoStream;
    if (own != kNoStream && ring->all[own].parent == parent)
      __atomic_store_n(&ring->all[own].returned, ring->all[own].number + 1, __ATOMIC_RELAXED);
    end_own_stream(log);
    if (!has_any || goes_on)
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
  for (int log = 0; log < kLogs && is_same_process; log++)
    take_interrupted(log, saved);
}

} // namespace assay::relocated
