#include "image/carried_note.h"

#include "image/notes.h"

#include <cstring>

namespace image {

std::optional<CarriedNote> carried_note(std::span<const std::byte> notes) {
  const auto content = find_note(notes, 4, kCarriedNoteName, kCarriedNoteType);
  CarriedNote found;
  if (content.size() != sizeof found)
    return std::nullopt;
  std::memcpy(&found, content.data(), sizeof found);
  return found;
}

} // namespace image
