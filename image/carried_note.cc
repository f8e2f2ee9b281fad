#include "image/carried_note.h"

#include <llvm/BinaryFormat/ELF.h>

#include <cstring>

namespace image {

std::optional<CarriedNote> carried_note(std::span<const std::byte> notes) {
  constexpr uint64_t kAlign = 4;
  auto padded = [](uint64_t size) { return (size + kAlign - 1) & ~(kAlign - 1); };
  llvm::ELF::Elf64_Nhdr header;
  while (notes.size() >= sizeof header) {
    std::memcpy(&header, notes.data(), sizeof header);
    const uint64_t name = sizeof header, content = name + padded(header.n_namesz),
                   end = content + padded(header.n_descsz);
    if (end > notes.size())
      return std::nullopt;
    CarriedNote found;
    if (header.n_type == kCarriedNoteType && header.n_namesz == sizeof kCarriedNoteName &&
        header.n_descsz == sizeof found &&
        std::memcmp(notes.data() + name, kCarriedNoteName, sizeof kCarriedNoteName) == 0) {
      std::memcpy(&found, notes.data() + content, sizeof found);
      return found;
    }
    notes = notes.subspan(end);
  }
  return std::nullopt;
}

} // namespace image
