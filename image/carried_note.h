// The note of an executable that `assay trace instrument` has written: where the program ends, and
// what its headers said before the runtime was put behind it. Who reads the file sees the program
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace image {

struct CarriedNote {
  uint64_t begin = 0;         // of what was added: the first address
  uint64_t entry = 0;         // of the program
  uint64_t unwind_header = 0; // PT_GNU_EH_FRAME; 0: none
};
inline constexpr char kCarriedNoteName[] = "Assay";
inline constexpr uint32_t kCarriedNoteType = 1;

// From the bytes of a PT_NOTE segment.
std::optional<CarriedNote> carried_note(std::span<const std::byte> notes);

} // namespace image
