// Places that must lead to the moved code may lie closer together than the 5 bytes of a jump. First
// each site takes its own bytes: 5, or 2 for a short jump. Only then the holes for the long jumps
// behind the short ones are looked for, the nearest first, within reach of a short jump: so no hole
// takes what a site needs. No other arrangement is tried; a routine without room stays where it is.
//
// Dead are the bytes of decoded instructions, and the nop and int3 that pad behind them. Refused:
// the whole range of a routine, because constants between its instructions are still read.

#include "trace/dead_bytes.h"

#include <algorithm>

namespace trace {

static constexpr uint32_t kLong = 5, kShort = 2;

DeadBytes::DeadBytes(const image::Executable &executable, const InstructionDecoder &decoder,
                     const binary::Routine &routine, const binary::FlowGraph &graph) {
  for (const binary::Instruction &instruction : graph.code.instructions)
    add(instruction.address, instruction.end());
  for (const image::CodeRange &range : routine.ranges)
    add_padding(executable, decoder, range.end);
}

void DeadBytes::add(uint64_t begin, uint64_t end) {
  uint64_t &to = dead_[begin];
  to = std::max(to, end);
}

void DeadBytes::add_padding(const image::Executable &executable, const InstructionDecoder &decoder,
                            uint64_t at) {
  constexpr uint64_t kMax = 64;
  const uint64_t begin = at;
  DecodedInstruction decoded;
  while (
      at - begin < kMax && executable.executable_at(at) && !executable.function_at(at) &&
      decoder.decode(executable.bytes_from(at), decoded) &&
      (decoded.info.mnemonic == ZYDIS_MNEMONIC_NOP || decoded.info.mnemonic == ZYDIS_MNEMONIC_INT3))
    at += decoded.info.length;
  if (at > begin)
    add(begin, at);
}

bool DeadBytes::place(const std::vector<std::pair<uint64_t, uint32_t>> &sites,
                      std::vector<AssayMovedJump> &jumps) {
  std::vector<std::pair<uint64_t, uint32_t>> narrow;
  for (size_t i = 0; i < sites.size(); i++) {
    const uint64_t from = sites[i].first;
    const uint64_t next = i + 1 < sites.size() ? sites[i + 1].first : UINT64_MAX;
    const uint64_t room = std::min(next - from, end_of(from) - from);
    if (room >= kLong) {
      jumps.push_back({from, sites[i].second, kLong});
      taken_[from] = from + kLong;
    } else if (room >= kShort) {
      narrow.push_back(sites[i]);
      taken_[from] = from + kShort;
    } else {
      return false;
    }
  }
  for (const auto &[from, to] : narrow) {
    const auto hop = hole_near(from);
    if (!hop)
      return false;
    taken_[*hop] = *hop + kLong;
    jumps.push_back({*hop, to, kLong});
    jumps.push_back({from, static_cast<uint32_t>(*hop - from), kShort});
  }
  return true;
}

// Where the stretch of dead bytes ends that holds an address.
uint64_t DeadBytes::end_of(uint64_t address) const {
  auto at = dead_.upper_bound(address);
  if (at == dead_.begin())
    return address;
  uint64_t end = std::max(std::prev(at)->second, address);
  for (; at != dead_.end() && at->first == end; ++at)
    end = at->second;
  return end;
}

bool DeadBytes::is_free(uint64_t begin, uint64_t end) const {
  if (end_of(begin) < end || dead_.empty() || dead_.begin()->first > begin)
    return false;
  auto after = taken_.lower_bound(end);
  return after == taken_.begin() || std::prev(after)->second <= begin;
}

std::optional<uint64_t> DeadBytes::hole_near(uint64_t from) const {
  for (uint64_t distance = 0; distance < 120; distance++) {
    if (is_free(from + kShort + distance, from + kShort + distance + kLong))
      return from + kShort + distance;
    if (from > distance + kLong && is_free(from - distance - kLong, from - distance))
      return from - distance - kLong;
  }
  return std::nullopt;
}

} // namespace trace
