#include "image/notes.h"

#include <llvm/BinaryFormat/ELF.h>

#include <cstring>

namespace image {

std::span<const std::byte> find_note(std::span<const std::byte> notes, uint64_t align,
                                     std::string_view name, uint32_t type) {
  auto padded = [mask = (align == 8 ? 8 : 4) - uint64_t{1}](uint64_t size) {
    return (size + mask) & ~mask;
  };
  llvm::ELF::Elf64_Nhdr header;
  while (notes.size() >= sizeof header) {
    std::memcpy(&header, notes.data(), sizeof header);
    const uint64_t content = padded(sizeof header + uint64_t{header.n_namesz}),
                   end = content + header.n_descsz;
    if (end > notes.size())
      return {};
    // The name's size counts its zero byte.
    if (header.n_type == type && header.n_namesz == name.size() + 1 &&
        std::memcmp(notes.data() + sizeof header, name.data(), name.size()) == 0)
      return notes.subspan(content, header.n_descsz);
    if (padded(end) > notes.size())
      return {};
    notes = notes.subspan(padded(end));
  }
  return {};
}

} // namespace image
