#include "trace/trace_data.h"

#include "base/byte_reader.h"
#include "base/fail.h"

namespace trace {
namespace {

// LEB128, seven bits a byte; signed numbers with their sign in the lowest bit.
class Encoder {
public:
  std::vector<std::byte> bytes;
  void number(uint64_t value) {
    do {
      const auto low = static_cast<uint8_t>(value & 0x7f);
      value >>= 7;
      bytes.push_back(static_cast<std::byte>(value ? low | 0x80 : low));
    } while (value);
  }
  void signed_number(int64_t value) {
    number(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void text(const std::string &text) {
    number(text.size());
    const auto *raw = reinterpret_cast<const std::byte *>(text.data());
    bytes.insert(bytes.end(), raw, raw + text.size());
  }
};

class Decoder {
public:
  explicit Decoder(std::span<const std::byte> bytes) : reader_(bytes, "a record of the trace") {}
  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = reader_.read<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    base::fail("a number in a record of the trace has no end");
  }
  // A number that a type holds, at most `most`.
  template <class T> T bounded(uint64_t most) {
    const uint64_t value = number();
    if (value > most)
      base::fail("a number in a record of the trace is {}, where at most {} makes sense", value,
                 most);
    return static_cast<T>(value);
  }
  int64_t signed_number() {
    const uint64_t value = number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  std::string text() { return std::string(reader_.text(number())); }

private:
  base::ByteReader reader_;
};

enum : uint8_t {
  kWrites = 1,
  kInImage = 2,
  kThreadLocal = 4,
  kRepeats = 8,
  kTerms = 4 /* shift */
};

} // namespace

std::vector<std::byte> encode(std::span<const Group> groups) {
  Encoder to;
  uint64_t last = 0;
  for (const Group &group : groups) {
    to.number(group.values.size() << 1 | group.loop.has_value());
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
  constexpr uint64_t kMostValues = 254, kMostAccesses = 1 << 16;
  if (count > bytes.size())
    base::fail("a record of the trace is said to hold {} groups in {} bytes", count, bytes.size());
  Decoder from(bytes);
  std::vector<Group> groups(count);
  uint64_t last = 0;
  for (Group &group : groups) {
    const uint64_t header = from.bounded<uint64_t>(kMostValues << 1 | 1);
    const auto values = static_cast<uint8_t>(header >> 1);
    group.values.resize(values);
    if (header & 1) {
      LoopOfGroup &loop = group.loop.emplace();
      loop.counter = from.bounded<uint8_t>(kMostValues);
      for (unsigned v = 0; v < values; v++)
        loop.steps.push_back(from.signed_number());
      if (loop.counter >= values || !loop.steps[loop.counter])
        base::fail("a loop of the trace is counted by value {} of {}, which stays the same",
                   loop.counter, values);
    }
    const uint64_t accesses = from.bounded<uint32_t>(kMostAccesses);
    auto value = [&] {
      const auto which = from.bounded<uint8_t>(kMostValues);
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
    to.text(function.name);
    to.text(function.detail);
  }
  return std::move(to.bytes);
}

std::vector<MovedFunction> decode_functions(std::span<const std::byte> bytes, uint32_t count) {
  if (count > bytes.size())
    base::fail("a record of the trace is said to hold {} functions in {} bytes", count,
               bytes.size());
  Decoder from(bytes);
  std::vector<MovedFunction> functions(count);
  uint64_t last = 0;
  for (MovedFunction &function : functions) {
    function.address = last += static_cast<uint64_t>(from.signed_number());
    function.bytes = from.bounded<uint32_t>(UINT32_MAX);
    function.why = from.bounded<WhyUnmoved>(static_cast<uint64_t>(WhyUnmoved::asks_caller));
    function.accesses = from.bounded<uint32_t>(UINT32_MAX);
    function.logged = from.bounded<uint32_t>(UINT32_MAX);
    function.values = from.bounded<uint32_t>(UINT32_MAX);
    function.name = from.text();
    function.detail = from.text();
  }
  return functions;
}

} // namespace trace
