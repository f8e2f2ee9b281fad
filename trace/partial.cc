// A part that begins at an access is logged from the begin of the program, for it has to be
// counted; what was logged before is dropped, and threads begin streams anew, since a stream can be
// understood from its begin only.

#include "trace/partial.h"

#include "base/fail.h"
#include "base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trace {

TracePoint TracePoint::parse(const std::string &text, const char *option) {
  TracePoint point;
  try {
    if (text.ends_with("s") || text.ends_with("min") || text.ends_with("h"))
      point.ns = base::parse_duration_us(text) * 1000;
    else
      point.accesses = base::parse_count(text);
  } catch (const base::Failure &) {
    base::fail(
        "{} '{}': this is not a time and not a number of accesses; write it like 2s, or like "
        "10M",
        option, text);
  }
  return point;
}

void TraceParts::set_window(const std::string &text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos)
    base::fail("--window {}: say how long of which period, for example 10ms/1s", text);
  window_ns = base::parse_duration_us(text.substr(0, slash), "--window") * 1000;
  every_ns = base::parse_duration_us(text.substr(slash + 1), "--window") * 1000;
  if (window_ns == 0 || window_ns >= every_ns)
    base::fail("--window {}: the window must be shorter than its period, and not empty", text);
}

void TraceParts::check() const {
  if (stop && !stop->accesses && !stop->ns)
    base::fail("--stop-after 0: say how long, for example 2s, or how many accesses to record");
  const bool by_measure = start || stop || every_ns;
  if (by_measure + has_marks() + bool(switches) > 1)
    base::fail(
        "a part begins and ends by marks (--start-at, --stop-at), by a signal (--on-signal), "
        "or by time and number (--start-after, --stop-after, --window); choose one of these");
  for (const std::string &mark : {start_mark, stop_mark})
    if (mark.size() >= ASSAY_RING_MARK_BYTES)
      base::fail("{}: names of marks may have at most {} bytes", mark, ASSAY_RING_MARK_BYTES - 1);
}

PartialSink::PartialSink(TraceSink &to, const TraceParts &parts)
    : to_(to), parts_(parts), live_(counted_),
      counts_((parts.start && parts.start->accesses) || (parts.stop && parts.stop->accesses)),
      has_started_(!parts.start) {}

uint32_t PartialSink::gate(uint64_t elapsed_ns) {
  bool begins_anew = false;
  elapsed_ns_ = elapsed_ns;
  if (!has_started_ && (parts_.start->accesses ? counted_.all >= parts_.start->accesses
                                               : elapsed_ns >= parts_.start->ns)) {
    has_started_ = true;
    started_ns_ = elapsed_ns;
    begins_anew = parts_.start->accesses != 0;
  }
  has_stopped_ |= has_enough();
  bool is_open = !has_stopped_ && (has_started_ || parts_.start->accesses);
  if (parts_.switches)
    is_open = parts_.switches() % 2 == 1;
  if (is_open && has_started_ && parts_.every_ns)
    is_open = (elapsed_ns - started_ns_) % parts_.every_ns < parts_.window_ns;
  if (is_open != is_open_)
    gate_ = assay_gate_switched(gate_);
  else if (begins_anew)
    gate_ = assay_gate_renewed(gate_);
  is_open_ = is_open;
  return gate_;
}

bool PartialSink::has_enough() const {
  if (!has_started_ || !parts_.stop)
    return false;
  return parts_.stop->accesses ? recorded_ >= parts_.stop->accesses
                               : elapsed_ns_ - started_ns_ >= parts_.stop->ns;
}

void PartialSink::file(const TracedFile &file, const MovedModule &moved) {
  if (counts_)
    live_.file(file, moved);
  to_.file(file, moved);
}

void PartialSink::mapping(const TracedMapping &mapping) {
  if (counts_)
    live_.mapping(mapping);
  to_.mapping(mapping);
}

void PartialSink::stream(const TracedStream &stream) {
  if (counts_)
    live_.stream(stream);
  if (has_started_)
    to_.stream(stream);
  else
    dropped_.insert(stream.number);
}

void PartialSink::buffer(const TracedBuffer &buffer) {
  const uint64_t counted_before = counted_.all;
  if (counts_)
    live_.buffer(buffer);
  // What was logged by a time may come after it.
  const bool is_beyond = parts_.stop && parts_.stop->accesses && has_enough();
  if (is_beyond || dropped_.contains(buffer.stream))
    return;
  to_.buffer(buffer);
  has_any_ = true;
  recorded_ += counted_.all - counted_before;
}

std::optional<std::string> PartialSink::why_nothing() const {
  if (has_any_)
    return std::nullopt;
  const std::string options = fmt::format("{}", fmt::join(parts_.asked, " "));
  if (!parts_.start_mark.empty())
    return fmt::format("the program made no mark {} (assay_mark of assay/annotate.h)",
                       parts_.start_mark);
  if (parts_.switches)
    return "assay got no SIGUSR1";
  // The gate opens where the tool has counted so many; a thread looks when its buffer is full.
  constexpr const char *kTooLate =
      "; it ended before a thread had noticed, which takes a buffer of "
      "256 KiB: some ten thousand accesses, or more";
  if (counts_ && !(parts_.start && parts_.start->ns))
    return fmt::format("{}, but the program made {}{}", options,
                       base::format_counted(double(counted_.all), "access", "accesses"),
                       parts_.start && counted_.all >= parts_.start->accesses ? kTooLate : "");
  return fmt::format("{}, but the program took {}", options,
                     base::format_duration_us(double(elapsed_ns_) / 1000));
}

} // namespace trace
