// Sampled values, as data: what instructions of any program computed (`assay values`).
#pragma once

#include "abi/samples.h"
#include "profile/hotlist.h"
#include "profile/ids.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace profile {

// How a recording was made.
struct Sampling {
  uint32_t collector = 0;    // enum AssayCollector (abi/records.h)
  uint32_t scope = 0;        // enum AssaySamplingScope
  uint64_t hertz = 0;        // samples a second of each cpu
  uint32_t instructions = 0; // of a sample, on average
  uint32_t most_skipped = 0; // instructions before the first one recorded: fewer than this
  uint64_t kinds = 0;        // recorded: bits 1 << enum assay_value_kind
  uint64_t duration_us = 0;
  friend auto operator<=>(const Sampling &, const Sampling &) = default;
};

// The bytes of an instruction, in place: there are hundreds of thousands.
class InstructionBytes {
public:
  static constexpr size_t kMax = 15; // of an x86 instruction
  InstructionBytes() = default;
  // Of more than kMax bytes, the first.
  explicit InstructionBytes(std::span<const std::byte> bytes)
      : size_(static_cast<uint8_t>(std::min(bytes.size(), kMax))) {
    std::copy_n(bytes.begin(), size_, bytes_.begin());
  }
  InstructionBytes(std::initializer_list<uint8_t> bytes)
      : InstructionBytes(std::as_bytes(std::span(bytes.begin(), bytes.size()))) {}
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  std::span<const std::byte> span() const { return {bytes_.data(), size_}; }
  friend bool operator==(const InstructionBytes &, const InstructionBytes &) = default;
  friend auto operator<=>(const InstructionBytes &a, const InstructionBytes &b) {
    return std::lexicographical_compare_three_way(a.span().begin(), a.span().end(),
                                                  b.span().begin(), b.span().end());
  }

private:
  uint8_t size_ = 0;
  std::array<std::byte, kMax> bytes_ = {}; // zeros behind the last
};

// An instruction that samples came to. Equal but for the counts there are none.
struct SampledInstruction {
  ModuleId module;
  uint64_t offset = 0; // link-time address; of code without a file, the address
  InstructionBytes bytes;
  uint64_t interrupts = 0; // samples that began here
  uint64_t executions = 0; // how often it was interpreted
  friend auto operator<=>(const SampledInstruction &, const SampledInstruction &) = default;
};

// The values of one kind at one instruction.
struct SampledValues {
  ModuleId module;
  uint64_t offset = 0; // of the instruction
  uint8_t kind = 0;    // enum assay_value_kind
  uint8_t detail = 0;  // of a result: bytes; of an access: bytes; of an argument: its number from 0
  Hotlist hotlist;
  Hotlist strides; // of addresses: differences between two executions in one sample
  friend bool operator==(const SampledValues &, const SampledValues &) = default;
};

// A load that follows a store in the same sample in a way that costs.
struct MemoryConflict {
  ModuleId store_module, load_module;
  uint64_t store_offset = 0, load_offset = 0;
  uint32_t kind = 0; // enum AssayConflictKind (abi/records.h)
  uint64_t count = 0;
  friend auto operator<=>(const MemoryConflict &, const MemoryConflict &) = default;
};

// Sums of all recordings.
struct Values {
  uint64_t samples = 0;                           // interrupts
  std::array<uint64_t, ASSAY_SAMPLE_ENDS> ends{}; // of these, by how interpreting them ended
  std::vector<SampledInstruction> instructions;   // by module, offset
  std::vector<SampledValues> values;              // by module, offset, kind, detail
  std::vector<MemoryConflict> conflicts;
  friend bool operator==(const Values &, const Values &) = default;
};

// Of a file, made of its build id, or of its path where it has none.
uint64_t file_hash(const std::vector<uint8_t> &build_id, const std::string &path);

// Values that are places in code, targets and callers, are the same in every run: the low 48 bits
// are the address in its file, the top 16 are this number of the file, made of its build id, or of
// its path where it has none. Never 0.
uint16_t code_value_file(const std::vector<uint8_t> &build_id, const std::string &path);

} // namespace profile
