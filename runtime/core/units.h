// What the compiler says of a module's translation units (abi/sites.h).
#pragma once

#include <stdint.h>

namespace assay {

// A tool's bit in a set of tools.
namespace tool_bit {
#define ASSAY_TOOL(name, bit, question) constexpr uint64_t name = 1ULL << bit;
#include "abi/tools.def"
} // namespace tool_bit

// Adds what the units of a SITES section ask for to runtime.tools_wanted, .counters and .lines. False if
// one of them counts in another way than those before.
bool read_units(const void *sites, uint64_t size);

} // namespace assay
