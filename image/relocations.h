// The words of a file that the loader writes before the program runs.
#pragma once

#include "image/elf_tables.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace image {

struct RelocatedWord {
  enum class Kind : uint8_t {
    value,    // becomes `value`, an address of this file (at load bias 0)
    imported, // becomes the address of a symbol that another file defines
    resolved, // becomes what the resolver at `value` returns (IRELATIVE)
    unknown,  // thread-local offsets, copies, what is not x86-64's
  };
  uint64_t address = 0; // of the 8 bytes
  uint64_t value = 0;
  uint32_t symbol = 0; // in the dynamic symbols; 0 if none, or if an offset is added to it
  Kind kind = Kind::unknown;
};

// By address, one at an address: of kind `unknown` if the file says several things of it.
std::vector<RelocatedWord> relocated_words(const ElfTables &tables);

} // namespace image
