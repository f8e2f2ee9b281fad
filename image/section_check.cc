// A guard before llvm::object.
//
// The problem: LLVM's reader opens any ELF file, but some of its accessors have no way to return an
// error and end the whole program (report_fatal_error) when a symbol table has another entry size
// than it expects, or lies outside the file. Found by tests/fuzz/symbols_fuzz. The idea: check the
// few facts of section headers that those accessors rely on before the file gets that far.
//
// Doing without llvm::object was refused: its DWARF reader and symbolizer stand on it. What the
// check cannot see are files that LLVM opens on its own (separate debug info), and damage within
// DWARF, which LLVM answers with errors.

#include "image/section_check.h"

#include "image/elf_tables.h"

#include "base/fail.h"
#include "base/mapped_file.h"

#include <algorithm>
#include <cstring>

namespace image {
namespace {

using namespace llvm::ELF;

uint64_t row_size(uint32_t section_type) {
  switch (section_type) {
  case SHT_SYMTAB:
  case SHT_DYNSYM: return sizeof(Elf64_Sym);
  case SHT_RELA: return sizeof(Elf64_Rela);
  case SHT_REL: return sizeof(Elf64_Rel);
  case SHT_RELR: return sizeof(Elf64_Relr);
  case SHT_DYNAMIC: return sizeof(Elf64_Dyn);
  case SHT_SYMTAB_SHNDX: return sizeof(Elf64_Word);
  default: return 0;
  }
}

// Debug info may be compressed, with its size before. LLVM allocates as much as that says.
bool has_plausible_size(std::span<const std::byte> compressed) {
  constexpr uint64_t kMaxCompressed = 4096; // to one; deflate can do 1032
  Table<Elf64_Chdr> header(compressed.first(std::min(compressed.size(), sizeof(Elf64_Chdr))));
  return header.size() && header[0].ch_size / kMaxCompressed <= compressed.size();
}

std::optional<std::string> damage(std::span<const std::byte> file) {
  Table<Elf64_Ehdr> headers(file.first(std::min(file.size(), sizeof(Elf64_Ehdr))));
  if (!headers.size() || std::memcmp(file.data(), ElfMagic, 4) != 0)
    return "it is not an ELF file";
  Elf64_Ehdr header = headers[0];
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "it is not an ELF file of 64 bits";
  if (!header.e_shoff)
    return std::nullopt;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > file.size())
    return "its section headers lie outside of it";
  Table<Elf64_Shdr> sections(file.subspan(header.e_shoff));
  uint64_t count = header.e_shnum;
  if (!count && sections.size())
    count = sections[0].sh_size;
  if (count > sections.size())
    return "its section headers lie outside of it";
  for (uint64_t index = 0; index < count; index++) {
    Elf64_Shdr section = sections[index];
    uint64_t row = row_size(section.sh_type);
    bool is_compressed = section.sh_flags & SHF_COMPRESSED;
    if (!section.sh_size || (!row && !is_compressed))
      continue;
    bool is_inside =
        section.sh_offset <= file.size() && section.sh_size <= file.size() - section.sh_offset;
    bool is_whole = is_inside && (!row || (section.sh_entsize == row &&
                                           section.sh_size % row == 0 && section.sh_link < count));
    if (!is_whole ||
        (is_compressed && !has_plausible_size(file.subspan(section.sh_offset, section.sh_size))))
      return fmt::format("its section {} is damaged", index);
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> section_damage(const std::string &path) {
  try {
    base::MappedFile file(path);
    return damage(file.bytes());
  } catch (const base::Failure &failure) {
    std::string why = failure.what(); // "path: …"
    return why.starts_with(path + ": ") ? why.substr(path.size() + 2) : why;
  }
}

} // namespace image
