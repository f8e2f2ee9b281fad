// The tables of an x86-64 ELF file, as checked views of its bytes.
//
// Nothing is copied but headers; a view stays valid as long as the bytes. A table that lies outside
// the file is taken as absent, because the loader would not miss it or because its user cannot do
// more than go without; only what makes the file unloadable is a Failure.
#pragma once

#include "image/carried_note.h"
#include "image/segments.h"

#include <llvm/BinaryFormat/ELF.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace image {

// Rows of one size, copied out one at a time, so that alignment does not matter. Bytes behind the
// last whole row are no row.
template <class Row> class Table {
public:
  Table() = default;
  explicit Table(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t size() const { return bytes_.size() / sizeof(Row); }
  // index < size()
  Row operator[](uint64_t index) const {
    Row row;
    std::memcpy(&row, bytes_.data() + index * sizeof(Row), sizeof(Row));
    return row;
  }

private:
  std::span<const std::byte> bytes_;
};

struct SymbolTable {
  // A name that is longer is taken as none, so that no file can make a look-up slow.
  static constexpr uint64_t kLongestName = 1 << 16;

  Table<llvm::ELF::Elf64_Sym> rows;
  std::span<const std::byte> strings;

  // Empty if it has none.
  std::string_view name(const llvm::ELF::Elf64_Sym &symbol) const;
};

// Part of an executable segment that is code: a section, or the whole segment if the file has no
// section headers.
struct CodeRegion {
  uint64_t begin = 0, end = 0; // within the file-backed part of one executable segment
  bool is_plt = false;         // .plt, .plt.sec, .plt.got, .iplt
  uint64_t entry_size = 0;     // of a PLT; 0 if the file does not say
};

struct AddressRange {
  uint64_t begin = 0, end = 0; // end exclusive
};

struct ElfTables {
  // Throws Failure, one sentence, if these are not the bytes of an executable or a shared object
  // for x86-64. `path` is for messages.
  ElfTables(std::span<const std::byte> file, const std::string &path);

  std::optional<uint64_t> dynamic(int64_t tag) const;

  // What the file says of a runtime that it carries; all that follows is of the program alone.
  std::optional<CarriedNote> carried;
  std::span<const std::byte> build_id; // empty: it has none
  bool position_independent = false;
  std::optional<uint64_t> entry;
  Segments segments;
  SymbolTable static_symbols;  // .symtab
  SymbolTable dynamic_symbols; // .dynsym; rows up to the last one known
  // Relocations that the loader or, in static programs, the start-up code applies.
  std::vector<Table<llvm::ELF::Elf64_Rela>> relocations;
  Table<llvm::ELF::Elf64_Rela> jump_slots; // DT_JMPREL; also among `relocations`
  Table<uint64_t> packed_relative;         // DT_RELR
  bool has_sections = false;
  bool patches_code = false;               // its functions are changed as it runs
  std::vector<CodeRegion> code;            // by address, not overlapping
  std::vector<AddressRange> data;          // where constants and variables may be; as `code`
  std::optional<AddressRange> eh_frame;    // by its section header
  std::optional<uint64_t> eh_frame_header; // address of PT_GNU_EH_FRAME
  std::optional<AddressRange>
      relro; // PT_GNU_RELRO: of writable segments what relocations alone write

private:
  void read_program_headers(std::span<const std::byte> file, const std::string &path,
                            const llvm::ELF::Elf64_Ehdr &header);
  void read_sections(std::span<const std::byte> file, const llvm::ELF::Elf64_Ehdr &header);
  void read_dynamic();
  uint64_t dynamic_symbol_count() const;

  Table<llvm::ELF::Elf64_Dyn> dynamic_;
  std::optional<AddressRange> dynamic_symbol_section_;
  std::vector<Table<llvm::ELF::Elf64_Rela>> relocation_sections_; // for files without DYNAMIC
};

} // namespace image
