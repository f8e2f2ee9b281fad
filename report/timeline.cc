// One line of eighths for the curve, one line of letters for the marks.
//
// The line has a fixed number of slots, each shows the largest value of its time; a slot without a
// point shows what the one before it held. Marks are letters below their slot and are spelled out
// in the next line, so that names of any length fit; where two fall into one slot, the first one's
// letter stands there.

#include "report/timeline.h"

#include "base/units.h"
#include "report/table.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

constexpr size_t kSlots = 60, kMaxMarks = 12;

// What the times of one process lie in.
struct Span {
  uint64_t begin = 0, end = 0;
  size_t slot(uint64_t time_us) const {
    double share = time_us <= begin ? 0 : double(time_us - begin) / double(end - begin);
    return std::min(kSlots - 1, static_cast<size_t>(share * kSlots));
  }
};

Span span_of(const profile::Process &process) {
  Span span{process.reset_us.value_or(0), 0};
  for (const profile::TimelinePoint &point : process.timeline)
    span.end = std::max(span.end, point.time_us);
  for (const profile::Ending &end : process.ends)
    span.end = std::max(span.end, end.time_us);
  return span;
}

// The curve and its caption; empty if there are too few points.
std::string curve(const profile::Process &process, const Span &span, std::string &caption) {
  uint64_t most = 0;
  for (const auto &point : process.timeline)
    most = std::max(most, point.live_bytes);
  if (process.timeline.size() < 4 || most == 0 || span.end <= span.begin)
    return "";
  static const char *const kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<uint64_t> slots(kSlots, 0);
  for (const auto &point : process.timeline) {
    uint64_t &slot = slots[span.slot(point.time_us)];
    slot = std::max(slot, point.live_bytes);
  }
  for (size_t slot = 1; slot < kSlots; slot++)
    if (slots[slot] == 0)
      slots[slot] = slots[slot - 1];
  std::string line;
  for (uint64_t live : slots)
    line += kEighths[static_cast<size_t>(double(live) / double(most) * 8)];
  line.erase(line.find_last_not_of(' ') + 1);
  caption = fmt::format("live bytes over time (top = {}): ", base::format_bytes(double(most)));
  return line;
}

std::string letter(size_t index) {
  return std::string(1, static_cast<char>('a' + index));
}

// "a loaded at 1.2 s, b served at 3 s, … 4 more"
std::string spelled(const std::vector<profile::Mark> &marks, bool letters) {
  std::string text;
  for (size_t index = 0; index < std::min(marks.size(), kMaxMarks); index++)
    text += fmt::format("{}{}{} at {}", index ? ", " : "", letters ? letter(index) + " " : "",
                        printable(marks[index].name),
                        base::format_duration_us(double(marks[index].time_us)));
  if (marks.size() > kMaxMarks)
    text += ", … " + more(marks.size() - kMaxMarks, "--json");
  return text;
}

std::string of_one(const profile::Process &process) {
  Span span = span_of(process);
  std::string caption, line = curve(process, span, caption), text;
  if (!line.empty())
    text += "  " + caption + line + "\n";
  if (process.marks.empty())
    return text;
  if (!line.empty()) {
    std::string places(kSlots, ' ');
    for (size_t index = std::min(process.marks.size(), kMaxMarks); index-- > 0;)
      places[span.slot(process.marks[index].time_us)] = letter(index).front();
    places.erase(places.find_last_not_of(' ') + 1);
    text += "  " + std::string(columns_of(caption), ' ') + places + "\n";
  }
  return text + "  marks: " + spelled(process.marks, !line.empty()) + "\n";
}

} // namespace

std::string timeline_text(const analyze::HeapResult &result) {
  std::string text;
  for (const profile::Process &process : result.processes)
    if (process.reset_us) {
      text += fmt::format("  counted from {} on, where {} began anew (assay_reset)\n",
                          base::format_duration_us(double(*process.reset_us)),
                          result.processes.size() == 1 ? "the program" : "a process");
      break;
    }
  if (result.processes.size() == 1)
    return text + of_one(result.processes.front());
  for (const profile::Process &process : result.processes)
    if (!process.marks.empty())
      text +=
          fmt::format("  marks of process {}: {}\n", process.pid, spelled(process.marks, false));
  return text;
}

Json timeline_json(const std::vector<profile::Process> &processes) {
  Json list = Json::array();
  for (const profile::Process &process : processes)
    for (const profile::TimelinePoint &point : process.timeline)
      list.push_back({{"pid", process.pid},
                      {"time_us", point.time_us},
                      {"live_count", point.live_objects},
                      {"live_bytes", point.live_bytes},
                      {"peak_bytes", point.peak_bytes}});
  return list;
}

Json marks_json(const std::vector<profile::Process> &processes) {
  Json list = Json::array();
  for (const profile::Process &process : processes)
    for (const profile::Mark &mark : process.marks)
      list.push_back({{"pid", process.pid}, {"time_us", mark.time_us}, {"name", mark.name}});
  return list;
}

} // namespace report
