// From decoded instructions to published ones (abi/published_code.h): what can be interpreted where
// there is neither floating point nor a decoder, and what is to be recorded.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"
#include "binary/decoder.h"
#include "image/executable.h"
#include "values/caller_rules.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace values {

// A set of enum assay_value_kind.
using Kinds = uint64_t;
constexpr Kinds kind_bit(unsigned kind) {
  return Kinds{1} << kind;
}
constexpr Kinds kAllKinds = kind_bit(ASSAY_VALUE_KINDS) - 1;
// Beside addresses: also those that are a constant, or a constant of the stack pointer or the frame pointer.
constexpr Kinds kConstantAddresses = kind_bit(63);

// Appends the entries of one instruction. `arguments` if a function begins with it; `caller` if its
// function's caller is wanted. `file`, or null: where it lies; of its constants, and of what the
// loader fills in, nothing is recorded.
void publish(const binary::Code &code, const binary::Instruction &instruction,
             std::span<const std::byte> bytes, std::optional<binary::RegisterSet> arguments,
             std::optional<CallerRule> caller, Kinds kinds, const image::Executable *file,
             std::vector<assay_uop> &entries);

} // namespace values
