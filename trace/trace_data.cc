// Numbers are LEB128, and addresses are differences to the one before: what stands in order has
// small ones. Skeletons are in skeleton_data.cc.
//
// What is read serves later as an index or a divisor, so each number is checked here: a value that
// the group has, at most two terms, a loop whose counter moves. A count is never more than the
// bytes of its record, so a damaged one cannot ask for much memory.

#include "trace/trace_data.h"

#include "base/fail.h"
#include "trace/numbers.h"

#include <algorithm>

namespace trace {
namespace {

enum : uint8_t {
  kWrites = 1,
  kInImage = 2,
  kThreadLocal = 4,
  kRepeats = 8,
  kTerms = 4 /* shift */
};
enum : uint8_t { kLoop = 1, kStart = 2 };

} // namespace

std::vector<std::byte> encode(std::span<const Group> groups) {
  Encoder to;
  uint64_t last = 0;
  for (const Group &group : groups) {
    to.number(group.values.size() << 2 | (group.loop ? kLoop : group.start ? kStart : 0));
    if (group.start) {
      to.number(group.start->skeleton);
      to.number(group.start->block);
      for (const GroupValue &value : group.values)
        to.number(value.reg);
    }
    if (group.loop) {
      to.number(group.loop->counter);
      for (int64_t step : group.loop->steps)
        to.signed_number(step);
    }
    to.number(group.accesses.size());
    for (const GroupAccess &access : group.accesses) {
      const bool repeats = access.times != GroupAccess::kOnce;
      to.signed_number(static_cast<int64_t>(access.pc - last));
      last = access.pc;
      to.number((access.write ? kWrites : 0) | (access.in_image ? kInImage : 0) |
                (access.thread_local_ ? kThreadLocal : 0) | (repeats ? kRepeats : 0) |
                access.terms << kTerms);
      to.number(access.size);
      to.signed_number(access.offset);
      for (uint8_t t = 0; t < access.terms; t++) {
        to.number(access.term[t].value);
        to.number(access.term[t].shift);
      }
      if (repeats) {
        to.number(access.times);
        to.number(access.left);
      }
    }
  }
  return std::move(to.bytes);
}

std::vector<Group> decode_groups(std::span<const std::byte> bytes, uint32_t count) {
  constexpr uint64_t kMaxValues = 254, kMaxAccesses = 1 << 16;
  check_count(bytes, count, "group");
  Decoder from(bytes);
  std::vector<Group> groups(count);
  uint64_t last = 0;
  for (Group &group : groups) {
    const uint64_t header = from.bounded<uint64_t>(kMaxValues << 2 | 3);
    const auto values = static_cast<uint8_t>(header >> 2);
    group.values.resize(values);
    if (header & kStart) {
      StartOfGroup &start = group.start.emplace();
      start.skeleton = from.bounded<uint32_t>(UINT32_MAX);
      start.block = from.bounded<uint32_t>(UINT32_MAX);
      for (GroupValue &value : group.values)
        value.reg = from.bounded<uint8_t>(ASSAY_REG_R15);
    }
    if (header & kLoop) {
      LoopOfGroup &loop = group.loop.emplace();
      loop.counter = from.bounded<uint8_t>(kMaxValues);
      for (unsigned v = 0; v < values; v++)
        loop.steps.push_back(from.signed_number());
      if (loop.counter >= values || !loop.steps[loop.counter])
        base::fail("a loop of the trace is counted by value {} of {}, which stays the same",
                   loop.counter, values);
    }
    const uint64_t accesses = from.bounded<uint32_t>(kMaxAccesses);
    auto value = [&] {
      const auto which = from.bounded<uint8_t>(kMaxValues);
      if (which >= values)
        base::fail("a group of the trace names value {} of {}", which, values);
      return which;
    };
    for (uint64_t a = 0; a < accesses; a++) {
      GroupAccess &access = group.accesses.emplace_back();
      access.pc = last += static_cast<uint64_t>(from.signed_number());
      const auto flags = from.bounded<uint8_t>(kRepeats << 1 | 3u << kTerms | 15);
      access.write = flags & kWrites;
      access.in_image = flags & kInImage;
      access.thread_local_ = flags & kThreadLocal;
      access.terms = flags >> kTerms;
      if (access.terms > 2)
        base::fail("an access of the trace has {} terms", access.terms);
      access.size = from.bounded<uint16_t>(UINT16_MAX);
      access.offset = from.signed_number();
      for (uint8_t t = 0; t < access.terms; t++) {
        access.term[t].value = value();
        access.term[t].shift = from.bounded<uint8_t>(3);
      }
      if (flags & kRepeats) {
        access.times = value();
        access.left = from.bounded<uint8_t>(UINT8_MAX);
        if (access.left != GroupAccess::kOnce && access.left >= values)
          base::fail("a group of the trace names value {} of {}", access.left, values);
      }
    }
  }
  return groups;
}

std::vector<std::byte> encode(std::span<const MovedFunction> functions) {
  Encoder to;
  uint64_t last = 0;
  for (const MovedFunction &function : functions) {
    to.signed_number(static_cast<int64_t>(function.address - last));
    last = function.address;
    to.number(function.bytes);
    to.number(static_cast<uint64_t>(function.why));
    to.number(function.accesses);
    to.number(function.logged);
    to.number(function.values);
    to.number(function.branches);
    to.text(function.name);
    to.text(function.detail);
  }
  for (size_t f = 0; f < functions.size(); f++)
    for (const MovedFunction::Part &part : functions[f].apart) {
      to.number(f);
      to.signed_number(static_cast<int64_t>(part.begin - functions[f].address));
      to.number(part.bytes);
    }
  return std::move(to.bytes);
}

std::vector<MovedFunction> decode_functions(std::span<const std::byte> bytes, uint32_t count) {
  check_count(bytes, count, "function");
  Decoder from(bytes);
  std::vector<MovedFunction> functions(count);
  uint64_t last = 0;
  for (MovedFunction &function : functions) {
    function.address = last += static_cast<uint64_t>(from.signed_number());
    function.bytes = from.bounded<uint32_t>(UINT32_MAX);
    function.why = from.bounded<WhyUnmoved>(static_cast<uint64_t>(WhyUnmoved::count) - 1);
    function.accesses = from.bounded<uint32_t>(UINT32_MAX);
    function.logged = from.bounded<uint32_t>(UINT32_MAX);
    function.values = from.bounded<uint32_t>(UINT32_MAX);
    function.branches = from.bounded<uint32_t>(UINT32_MAX);
    function.name = from.text();
    function.detail = from.text();
  }
  while (!from.is_at_end() && count) {
    MovedFunction &function = functions[from.bounded<uint32_t>(count - 1)];
    const uint64_t begin = function.address + static_cast<uint64_t>(from.signed_number());
    function.apart.push_back({begin, from.number()});
  }
  return functions;
}

std::vector<std::byte> encode(std::span<const LoggedBy> times) {
  Encoder to;
  LoggedBy last;
  for (const LoggedBy &time : times) {
    to.number(time.bytes - last.bytes);
    to.number(time.ns - last.ns);
    last = time;
  }
  return std::move(to.bytes);
}

std::vector<LoggedBy> decode_times(std::span<const std::byte> bytes, uint32_t count) {
  check_count(bytes, count, "time");
  constexpr uint64_t kMaxNs = UINT64_MAX / 2; // a sum of two is still a number
  Decoder from(bytes);
  std::vector<LoggedBy> times(count);
  LoggedBy last;
  for (LoggedBy &time : times) {
    time.bytes = last.bytes + from.bounded<uint32_t>(ASSAY_RING_BUFFER_BYTES);
    time.ns = std::min(last.ns + from.bounded<uint64_t>(kMaxNs), kMaxNs);
    last = time;
  }
  return times;
}

} // namespace trace
