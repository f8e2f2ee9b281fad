// The functions of a program in Go, from the table that its own runtime uses.
#pragma once

#include "image/elf_tables.h"
#include "image/function_ranges.h"
#include "image/segments.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace image {

// By begin; empty for other programs, and for versions of the table before Go 1.16. `relro` is
// ElfTables::relro. `word` is the value of the 8 bytes at an address once the loader is done.
// `release` is called from time to time: what was looked through need not stay in memory. All is
// checked: what makes no sense ends the list.
std::vector<CodeRange> go_functions(const Segments &segments,
                                    const std::optional<AddressRange> &relro,
                                    const std::function<std::optional<uint64_t>(uint64_t)> &word,
                                    const std::function<void()> &release);

} // namespace image
