// Streams are looked at in turn. A buffer that was handed over is complete. What the last buffer of
// a thread holds is taken when the thread is gone, or says that its stream has ended: up to the
// first group that is not whole. Where threads are still running at the end of the recording, it is
// copied until nothing is written meanwhile.

#include "trace/recording.h"

#include "base/shared_memory.h"
#include "trace/processes.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <optional>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

namespace trace {
namespace {

using base::load_shared;
using base::store_shared;

void wake(uint32_t &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint64_t now_ns() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

constexpr uint32_t kOver =
    UINT32_MAX - 1; // a kind: what it logged was taken when the recording ended

uint32_t traced_kind(const AssayRingStream &stream) {
  constexpr uint32_t kReturned = ASSAY_STREAM_returned_groups - ASSAY_STREAM_handler_groups;
  return stream.kind + (load_shared(stream.returned) == stream.number + 1 ? kReturned : 0);
}

// What was logged into a buffer of zeros: what is behind it may be more zeros that were logged, which nobody knows.
std::span<const std::byte> without_zeros_behind(std::span<const std::byte> data) {
  static constexpr std::byte kZeros[4096] = {};
  while (data.size() >= sizeof kZeros &&
         std::memcmp(data.last(sizeof kZeros).data(), kZeros, sizeof kZeros) == 0)
    data = data.first(data.size() - sizeof kZeros);
  while (!data.empty() && data.back() == std::byte{0})
    data = data.first(data.size() - 1);
  return data;
}

// How far a buffer may have been written: values are, before the position moves behind them.
uint32_t written_bytes(size_t logged) {
  return std::min(uint32_t(logged) + ASSAY_RING_SLACK, ASSAY_RING_BUFFER_BYTES);
}

} // namespace

Recording::Recording(const RecordingSettings &settings, TraceSink &sink)
    : settings_(settings), sink_(sink), begin_ns_(now_ns()), known_streams_(ASSAY_RING_STREAMS, 0) {
  std::memcpy(ring_->magic, ASSAY_RING_MAGIC, sizeof ring_->magic);
  ring_->version = ASSAY_RING_VERSION;
  ring_->log = settings.log;
  ring_->tool = static_cast<uint32_t>(getpid());
  ring_->pid_namespace = pid_namespace();
  ring_->filters = own_filters();
  ring_->bytes = ASSAY_RING_BYTES;
  if (settings_.gate)
    ring_->gate = settings_.gate(0);
  else
    ring_->gate = settings_.start_mark.empty() ? ASSAY_GATE_OPEN : ASSAY_GATE_CLOSED;
  std::memcpy(ring_->start_mark, settings_.start_mark.c_str(),
              std::min(settings_.start_mark.size(), sizeof ring_->start_mark - 1));
  std::memcpy(ring_->stop_mark, settings_.stop_mark.c_str(),
              std::min(settings_.stop_mark.size(), sizeof ring_->stop_mark - 1));
}

Recording::~Recording() {
  stop();
}

std::pair<std::string, std::string> Recording::environment() const {
  return {ASSAY_RING_ENVIRONMENT, memory_.path()};
}

std::byte *Recording::buffer_of(uint32_t slot, uint32_t buffer) {
  return reinterpret_cast<std::byte *>(ring_) + assay_ring_buffer(slot, buffer);
}

void Recording::stop() {
  store_shared(ring_->stopped, 1u);
  for (AssayRingStream &stream : ring_->all)
    wake(stream.freed);
  wake(ring_->request.state);
  wake(ring_->request.asker);
}

void Recording::poll(std::chrono::milliseconds most) {
  show_poll();
  if (settings_.gate) {
    store_shared(ring_->gate, settings_.gate(program_time_ns()));
    most = std::min(most, std::chrono::milliseconds(1)); // windows may be short
  }
  const uint32_t news = load_shared(ring_->news);
  const bool any = take_all();
  times_.note(now_ns());
  if (any || most.count() == 0)
    return;
  if (times_.has_several_threads())
    most = std::min(most, std::chrono::milliseconds(1));
  wait_for_news(news, std::min(most, std::chrono::milliseconds(999)));
}

uint64_t Recording::program_time_ns() const {
  return program_begin_ns_ ? now_ns() - program_begin_ns_ - moving_ns_ : 0;
}

void Recording::show_poll() {
  store_shared(ring_->now_ns, now_ns());
  store_shared(ring_->polls, ring_->polls + 1);
}

void Recording::wait_for_news(uint32_t seen, std::chrono::nanoseconds most) {
  constexpr std::chrono::nanoseconds kUnwoken = std::chrono::microseconds(100);
  const auto end = std::chrono::steady_clock::now() + most;
  do {
    const bool is_woken = !load_shared(ring_->looks_for_news);
    const timespec wait = {0, (is_woken ? most : std::min(most, kUnwoken)).count()};
    if (syscall(SYS_futex, &ring_->news, FUTEX_WAIT, seen, &wait, nullptr, 0) == 0 || is_woken)
      return;
    show_poll();
  } while (load_shared(ring_->news) == seen && std::chrono::steady_clock::now() < end);
}

// Whether there was anything.
bool Recording::take_all() {
  bool any = false;
  const auto now = std::chrono::steady_clock::now();
  const uint32_t wanted = load_shared(ring_->wanted);
  looks_for_gone_ = now - looked_ > std::chrono::milliseconds(100) || wanted != answered_;
  answered_ = wanted;
  if (looks_for_gone_) {
    looked_ = now;
    give_back_request();
    give_back_claims();
  }
  if (load_shared(ring_->request.state) == ASSAY_REQUEST_module) {
    answer();
    any = true;
  }
  // A handler's stream comes before the buffer that it interrupted. So of threads that is taken
  // which was there before handlers are looked at: what interrupted it has ended by then.
  std::vector<std::pair<uint32_t, Taken>> threads;
  for (uint32_t slot = 0; slot < ASSAY_RING_STREAMS; slot++)
    if (const uint32_t kind = load_shared(ring_->all[slot].kind);
        is_stream(kind) && !is_handlers(kind))
      threads.emplace_back(slot, look_at(slot));
  for (uint32_t slot = 0; slot < ASSAY_RING_STREAMS; slot++)
    if (is_handlers(load_shared(ring_->all[slot].kind)))
      any |= take(slot, look_at(slot));
  for (const auto &[slot, seen] : threads)
    any |= take(slot, seen);
  if (looks_for_gone_) {
    store_shared(ring_->looks, ring_->looks + 1);
    wake(ring_->looks);
  }
  return any;
}

// Of threads that were killed while they took a place.
void Recording::give_back_claims() {
  for (AssayRingStream &stream : ring_->all) {
    uint32_t kind = load_shared(stream.kind);
    const uint32_t thread = kind & ~ASSAY_RING_CLAIMED;
    if (kind & ASSAY_RING_CLAIMED && kind != kOver && thread && is_without_memory(thread))
      __atomic_compare_exchange_n(&stream.kind, &kind, ASSAY_STREAM_free, false, __ATOMIC_RELEASE,
                                  __ATOMIC_RELAXED);
  }
}

// First whether it has ended: what it has handed over by then is all.
Recording::Taken Recording::look_at(uint32_t slot) const {
  const AssayRingStream &stream = ring_->all[slot];
  const bool has_ended = load_shared(stream.ended) == stream.number + 1 || is_gone(stream);
  return {load_shared(stream.filled), has_ended};
}

void Recording::begin_stream(uint32_t slot) {
  const AssayRingStream &stream = ring_->all[slot];
  if (known_streams_[slot] == stream.number + 1)
    return;
  known_streams_[slot] = stream.number + 1;
  sink_.stream({stream.number, traced_kind(stream), stream.process, stream.thread, stream.parent,
                stream.pair, stream.program, stream.parent_bytes, stream.fs});
}

bool Recording::take(uint32_t slot, const Taken &seen) {
  AssayRingStream &stream = ring_->all[slot];
  bool any = false;
  uint32_t freed = stream.freed;
  do {
    for (const uint32_t filled = seen.has_ended ? load_shared(stream.filled) : seen.filled;
         freed != filled; freed++) {
      begin_stream(slot);
      AssayRingBuffer &full = stream.buffers[freed % ASSAY_RING_BUFFERS];
      const uint32_t bytes = std::min(full.bytes, ASSAY_RING_BUFFER_BYTES);
      hand_over(slot, freed, {buffer_of(slot, freed), bytes});
      store_shared(full.stale_bytes, written_bytes(bytes));
      store_shared(stream.freed, freed + 1);
      wake(stream.freed);
      any = true;
    }
  } while (seen.has_ended && !end_stream(slot, freed));
  return any || seen.has_ended;
}

bool Recording::is_gone(const AssayRingStream &stream) const {
  if (has_ended_)
    return true;
  // The ids of another namespace are others' here: such a stream lasts until the recording ends.
  if (!looks_for_gone_ || stream.pid_namespace != ring_->pid_namespace)
    return false;
  // What has ended, and its parent has not waited for, has no memory. The id may be another thread's since.
  return is_without_memory(stream.thread) ||
         access(fmt::format("/proc/{}/task/{}", stream.process, stream.thread).c_str(), F_OK) != 0;
}

// What `buffer`, the last one, holds. False: it has been handed over meanwhile.
bool Recording::end_stream(uint32_t slot, uint32_t last) {
  AssayRingStream &stream = ring_->all[slot];
  AssayRingBuffer &about = stream.buffers[last % ASSAY_RING_BUFFERS];
  std::span<const std::byte> data(buffer_of(slot, last), ASSAY_RING_BUFFER_BYTES);
  const bool is_stale = load_shared(about.stale_bytes) != 0; // nothing was logged there since
  std::optional<uint64_t> bytes;
  if (is_stale)
    bytes = 0;
  else if (load_shared(stream.ended) == stream.number + 1) {
    // The position is another stream's by now. A program that executed another one did not write the number of bytes.
    if (about.bytes)
      bytes = std::min(about.bytes, ASSAY_RING_BUFFER_BYTES);
  } else if (!has_ended_)
    bytes = times_.bytes_in(slot, last);
  if (bytes)
    data = data.first(*bytes);
  if (has_ended_ && !data.empty())
    data = copy_of(data);
  if (load_shared(stream.filled) != last)
    return false;
  if (!bytes)
    data = without_zeros_behind(data);
  if (!data.empty()) {
    begin_stream(slot);
    about.end_ns = std::max(times_.end_of(slot, now_ns()), about.begin_ns);
    hand_over(slot, last, data);
  }
  if (!is_stale)
    store_shared(about.stale_bytes, bytes ? written_bytes(data.size()) : uint32_t(data.size()));
  known_streams_[slot] = 0;
  // A thread that is still running goes on writing there: nobody else may.
  store_shared<uint32_t>(stream.kind, has_ended_ ? kOver : ASSAY_STREAM_free);
  return true;
}

// As a buffer was at one time, though a thread may be writing there: each byte is written once, so
// what has not changed while it was copied is whole. A thread that logs much is soon at the end of
// its buffer, and stops there. Empty if that takes too long.
std::span<const std::byte> Recording::copy_of(std::span<const std::byte> buffer) {
  constexpr auto kMax = std::chrono::seconds(1);
  const auto begin = std::chrono::steady_clock::now();
  do {
    copy_.assign(buffer.begin(), buffer.end());
    std::atomic_thread_fence(std::memory_order_acquire);
    if (std::memcmp(copy_.data(), buffer.data(), buffer.size()) == 0)
      return copy_;
  } while (std::chrono::steady_clock::now() - begin < kMax);
  return {};
}

void Recording::hand_over(uint32_t slot, uint32_t buffer, std::span<const std::byte> data) {
  const AssayRingStream &stream = ring_->all[slot];
  const AssayRingBuffer &about = stream.buffers[buffer % ASSAY_RING_BUFFERS];
  bytes_ += data.size();
  if (!data.empty())
    sink_.buffer({stream.number, uint64_t{buffer} * ASSAY_RING_BUFFER_BYTES,
                  since_begin(about.begin_ns), since_begin(about.end_ns), data,
                  times_.of(slot, buffer)});
}

// Of those that have logged, or were about to.
size_t Recording::running_processes() {
  looks_for_gone_ = true;
  std::set<uint32_t> processes;
  for (const AssayRingStream &stream : ring_->all)
    if (load_shared(stream.kind) != ASSAY_STREAM_free &&
        stream.pid_namespace == ring_->pid_namespace && // of others nobody here knows
        load_shared(stream.ended) != stream.number + 1 && !is_gone(stream))
      processes.insert(stream.process);
  return processes.size();
}

void Recording::finish(int wait_status) {
  running_ = running_processes();
  has_ended_ = true;
  const bool was_stopped = load_shared(ring_->stopped) != 0; // by a process that had no answer
  stop();                                                    // processes that are still running
  take_all();
  take_all(); // of streams that began meanwhile
  sink_.end({now_ns() - begin_ns_, bytes_, ring_->untraced_threads, wait_status, was_stopped});
  files_.remove();
}

Recording::Progress Recording::progress() const {
  return {files_.count(), files_.moved_functions(), files_.moved_files(), ring_->untraced_threads,
          running_};
}

// Of a process that was ended while it asked.
void Recording::give_back_request() {
  AssayTraceRequest &request = ring_->request;
  const uint32_t asker = load_shared(request.asker);
  if (!asker || !has_ended(asker))
    return;
  store_shared<uint32_t>(request.state, ASSAY_REQUEST_none);
  store_shared<uint32_t>(request.asker, 0);
  wake(request.asker);
}

void Recording::answer() {
  AssayTraceRequest &request = ring_->request;
  const uint64_t asked_ns = now_ns();
  if (!program_begin_ns_)
    program_begin_ns_ = asked_ns;
  request.answer[0] = 0;
  request.path[sizeof request.path - 1] = 0;
  const std::string path = request.path;
  const uint32_t process = request.asker;
  // Who is not of our namespace has said the path of its executable.
  const MovedFiles::File &known = files_.find(path, process);
  if (known.file.number) {
    sink_.mapping({request.program, known.file.number, request.bias, since_begin(now_ns())});
    request.first_id = known.file.first_group;
    const std::string code = known.code.string();
    if (code.size() < sizeof request.answer)
      std::memcpy(request.answer, code.c_str(), code.size() + 1);
  }
  files_.forget_given_up();
  moving_ns_ += now_ns() - asked_ns;
  store_shared<uint32_t>(request.state, ASSAY_REQUEST_answered);
  wake(request.state);
}

} // namespace trace
