// Notes of an ELF file: named, typed pieces of bytes that a PT_NOTE segment holds one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace image {

// What the first note of this name and type holds; empty if there is none. `notes` are the bytes of
// a PT_NOTE segment whose alignment is `align` (8, or else taken as 4).
std::span<const std::byte> find_note(std::span<const std::byte> notes, uint64_t align,
                                     std::string_view name, uint32_t type);

} // namespace image
