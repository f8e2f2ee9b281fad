// Reading ELF headers that anybody may have written.
//
// The problem: binaries come stripped, without section headers, statically linked (no DYNAMIC), or
// damaged, and each of them still has code that somebody wants explained. The idea: believe the
// program headers, as the loader does, and take from section headers only what nothing else says
// (which part of a segment is code, where .symtab is); what they say is cut to the segments.
//
// llvm::object, which image/elf.cc uses, was refused here: its view starts from section headers,
// its symbols cost an Expected and a string each, and what it hands out by address has to be
// checked against the file once more. What is read here are arrays of plain structs.
//
// Everything that is kept is proportional to the file: the segments' file-backed parts may together
// be at most twice the file, overlapping sections are cut, strings have a longest length.

#include "image/elf_tables.h"

#include "image/notes.h"

#include "base/fail.h"

#include <algorithm>

namespace image {
namespace {

using namespace llvm::ELF;

std::span<const std::byte> part(std::span<const std::byte> bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    return {};
  return bytes.subspan(offset, size);
}

std::string_view string_at(std::span<const std::byte> strings, uint64_t offset, uint64_t longest) {
  if (offset >= strings.size())
    return {};
  strings = strings.subspan(offset);
  const char *start = reinterpret_cast<const char *>(strings.data());
  const void *end = std::memchr(start, 0, std::min<uint64_t>(strings.size(), longest + 1));
  return end ? std::string_view(start, static_cast<const char *>(end) - start) : std::string_view();
}

template <class Row> std::optional<Row> row_at(std::span<const std::byte> bytes, uint64_t offset) {
  Table<Row> one(part(bytes, offset, sizeof(Row)));
  return one.size() ? std::optional(one[0]) : std::nullopt;
}

bool is_plt_name(std::string_view name) {
  return name == ".plt" || name == ".plt.sec" || name == ".plt.got" || name == ".iplt" ||
         name == ".plt.bnd";
}

// Sorts by begin and cuts what an earlier one covers already.
template <class Range> void separate(std::vector<Range> &ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t covered = 0;
  for (Range &range : ranges) {
    range.begin = std::max(range.begin, covered);
    covered = std::max(covered, range.end);
  }
  std::erase_if(ranges, [](const Range &range) { return range.begin >= range.end; });
}

} // namespace

std::string_view SymbolTable::name(const Elf64_Sym &symbol) const {
  return string_at(strings, symbol.st_name, kLongestName);
}

ElfTables::ElfTables(std::span<const std::byte> file, const std::string &path) {
  if (file.size() < 4 || std::memcmp(file.data(), ElfMagic, 4) != 0)
    base::fail("{}: it is not an ELF file; name an executable or a shared object", path);
  auto header = row_at<Elf64_Ehdr>(file, 0);
  if (!header)
    base::fail("{}: it ends within its ELF header; copy or build it again", path);
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_X86_64)
    base::fail("{}: it is not for x86-64 (64 bits); name an x86-64 executable or shared object",
               path);
  if (header->e_type == ET_REL)
    base::fail("{}: it is an object file; link it, and name the executable or shared object", path);
  if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
    base::fail("{}: it is neither an executable nor a shared object (ELF type {}); name one of "
               "these",
               path, header->e_type);
  position_independent = header->e_type == ET_DYN;
  if (header->e_entry)
    entry = header->e_entry;
  read_program_headers(file, path, *header);
  read_sections(file, *header);
  read_dynamic();
}

void ElfTables::read_program_headers(std::span<const std::byte> file, const std::string &path,
                                     const Elf64_Ehdr &header) {
  uint64_t count = header.e_phnum;
  if (count == 0xffff) // PN_XNUM: there are more, and section 0 says how many
    if (auto first = row_at<Elf64_Shdr>(file, header.e_shoff))
      count = first->sh_info;
  Table<Elf64_Phdr> rows(part(file, header.e_phoff, count * sizeof(Elf64_Phdr)));
  if (!count || header.e_phentsize != sizeof(Elf64_Phdr) || rows.size() != count)
    base::fail("{}: it has no readable program headers; copy or build it again", path);
  std::vector<Segment> found;
  std::optional<std::pair<uint64_t, uint64_t>> dynamic_place; // address, bytes
  uint64_t backed = 0;
  for (uint64_t index = 0; index < count; index++) {
    Elf64_Phdr row = rows[index];
    if (row.p_type == PT_NOTE) {
      const auto notes = part(file, row.p_offset, row.p_filesz);
      if (!carried)
        carried = carried_note(notes);
      if (build_id.empty())
        build_id = find_note(notes, row.p_align, "GNU", NT_GNU_BUILD_ID);
    }
    if (row.p_type == PT_GNU_EH_FRAME)
      eh_frame_header = row.p_vaddr;
    else if (row.p_type == PT_DYNAMIC)
      dynamic_place = {row.p_vaddr, row.p_filesz};
    else if (row.p_type == PT_GNU_RELRO && row.p_memsz <= UINT64_MAX - row.p_vaddr)
      relro = {row.p_vaddr, row.p_vaddr + row.p_memsz};
    if (row.p_type != PT_LOAD || !row.p_memsz)
      continue;
    if (row.p_memsz > UINT64_MAX - row.p_vaddr || row.p_filesz > row.p_memsz)
      base::fail("{}: its segment at {:#x} has an impossible size; copy or build it again", path,
                 row.p_vaddr);
    if (row.p_offset > file.size() || row.p_filesz > file.size() - row.p_offset)
      base::fail("{}: it ends before its segment at {:#x} does; copy or build it again", path,
                 row.p_vaddr);
    backed += row.p_filesz; // at most count * size of the file, no overflow
    if (backed > 2 * file.size())
      base::fail("{}: its segments map the same bytes again and again; copy or build it again",
                 path);
    if ((row.p_flags & PF_X) && !row.p_filesz)
      base::fail("{}: it has no code (is it a file of debug info?); name the program itself", path);
    found.push_back({row.p_vaddr, row.p_memsz, row.p_filesz, (row.p_flags & PF_R) != 0,
                     (row.p_flags & PF_W) != 0, (row.p_flags & PF_X) != 0, row.p_offset});
  }
  if (carried) {
    entry = carried->entry;
    eh_frame_header.reset();
    if (carried->unwind_header)
      eh_frame_header = carried->unwind_header;
    std::erase_if(found, [&](const Segment &each) { return each.address >= carried->begin; });
  }
  if (found.empty())
    base::fail("{}: it has nothing to load; name an executable or a shared object", path);
  std::sort(found.begin(), found.end(),
            [](const Segment &a, const Segment &b) { return a.address < b.address; });
  for (size_t index = 1; index < found.size(); index++)
    if (found[index].address - found[index - 1].address < found[index - 1].size)
      base::fail("{}: its segments at {:#x} and {:#x} overlap; copy or build it again", path,
                 found[index - 1].address, found[index].address);
  segments = Segments(std::move(found), file);
  if (dynamic_place)
    dynamic_ = Table<Elf64_Dyn>(segments.bytes(dynamic_place->first, dynamic_place->second));
}

void ElfTables::read_sections(std::span<const std::byte> file, const Elf64_Ehdr &header) {
  Table<Elf64_Shdr> rows;
  auto first = row_at<Elf64_Shdr>(file, header.e_shoff);
  if (header.e_shoff && header.e_shentsize == sizeof(Elf64_Shdr) && first) {
    uint64_t count = header.e_shnum ? header.e_shnum : first->sh_size;
    if (count <= file.size() / sizeof(Elf64_Shdr))
      rows = Table<Elf64_Shdr>(part(file, header.e_shoff, count * sizeof(Elf64_Shdr)));
  }
  uint32_t names_index =
      header.e_shstrndx == SHN_XINDEX && first ? first->sh_link : header.e_shstrndx;
  std::span<const std::byte> names;
  if (names_index < rows.size())
    names = part(file, rows[names_index].sh_offset, rows[names_index].sh_size);
  constexpr uint64_t kLongestSectionName = 64;
  for (uint64_t index = 1; index < rows.size(); index++) {
    Elf64_Shdr row = rows[index];
    if (row.sh_type == SHT_SYMTAB && !static_symbols.rows.size()) {
      static_symbols.rows = Table<Elf64_Sym>(part(file, row.sh_offset, row.sh_size));
      if (row.sh_link < rows.size())
        static_symbols.strings = part(file, rows[row.sh_link].sh_offset, rows[row.sh_link].sh_size);
    }
    const Segment *segment = row.sh_flags & SHF_ALLOC ? segments.at(row.sh_addr) : nullptr;
    if (!segment || row.sh_type == SHT_NOBITS || (row.sh_flags & SHF_TLS) || !row.sh_size ||
        row.sh_addr - segment->address > segment->file_size ||
        row.sh_size > segment->file_size - (row.sh_addr - segment->address))
      continue;
    AddressRange range{row.sh_addr, row.sh_addr + row.sh_size};
    std::string_view name = string_at(names, row.sh_name, kLongestSectionName);
    patches_code |= name == "xray_instr_map"; // of clang's XRay: where its runtime puts calls
    if (row.sh_type == SHT_DYNSYM)
      dynamic_symbol_section_ = range;
    else if (row.sh_type == SHT_RELA)
      relocation_sections_.emplace_back(segments.bytes(row.sh_addr, row.sh_size));
    else if (name == ".eh_frame")
      eh_frame = range;
    else if (row.sh_flags & SHF_EXECINSTR) {
      if (segment->executable)
        code.push_back({range.begin, range.end, is_plt_name(name), row.sh_entsize});
    } else if ((row.sh_type == SHT_PROGBITS || row.sh_type == SHT_INIT_ARRAY ||
                row.sh_type == SHT_FINI_ARRAY || row.sh_type == SHT_PREINIT_ARRAY) &&
               name != ".eh_frame_hdr" && name != ".gcc_except_table" && name != ".interp")
      data.push_back(range);
  }
  has_sections = !code.empty();
  if (!has_sections) {
    data.clear();
    for (const Segment &segment : segments.all())
      if (segment.executable)
        code.push_back({segment.address, segment.address + segment.file_size, false, 0});
      else
        data.push_back({segment.address, segment.address + segment.file_size});
  }
  separate(code);
  separate(data);
}

std::optional<uint64_t> ElfTables::dynamic(int64_t tag) const {
  for (uint64_t index = 0; index < dynamic_.size(); index++) {
    Elf64_Dyn row = dynamic_[index];
    if (row.d_tag == tag)
      return row.d_un.d_val;
    if (row.d_tag == DT_NULL)
      break;
  }
  return std::nullopt;
}

void ElfTables::read_dynamic() {
  auto table_at = [&](int64_t address_tag, int64_t size_tag) {
    auto address = dynamic(address_tag), size = dynamic(size_tag);
    return address && size ? segments.bytes(*address, *size) : std::span<const std::byte>();
  };
  jump_slots = Table<Elf64_Rela>(table_at(DT_JMPREL, DT_PLTRELSZ));
  relocations.emplace_back(table_at(DT_RELA, DT_RELASZ));
  relocations.push_back(jump_slots);
  packed_relative = Table<uint64_t>(table_at(DT_RELR, DT_RELRSZ));
  if (!dynamic_.size()) {
    // One table in static programs; more than that is somebody's joke.
    if (relocation_sections_.size() > 16)
      relocation_sections_.resize(16);
    relocations = std::move(relocation_sections_);
  }
  dynamic_symbols.strings = table_at(DT_STRTAB, DT_STRSZ);
  if (auto address = dynamic(DT_SYMTAB)) {
    std::span<const std::byte> from = segments.bytes_from(*address);
    uint64_t count = std::min(dynamic_symbol_count(), from.size() / sizeof(Elf64_Sym));
    dynamic_symbols.rows = Table<Elf64_Sym>(from.first(count * sizeof(Elf64_Sym)));
  }
}

// DT_SYMTAB comes without a length. Its section header tells it, or else the hash tables do: in
// DT_HASH the number of chain words, in DT_GNU_HASH the end of the chain that starts last.
uint64_t ElfTables::dynamic_symbol_count() const {
  if (dynamic_symbol_section_ && dynamic_symbol_section_->begin == dynamic(DT_SYMTAB))
    return (dynamic_symbol_section_->end - dynamic_symbol_section_->begin) / sizeof(Elf64_Sym);
  if (auto hash = dynamic(DT_HASH)) {
    Table<uint32_t> words(segments.bytes(*hash, 8));
    if (words.size() == 2)
      return words[1];
  }
  auto hash = dynamic(DT_GNU_HASH);
  if (!hash)
    return 0;
  Table<uint32_t> words(segments.bytes_from(*hash));
  if (words.size() < 4)
    return 0;
  uint64_t buckets = words[0], first_symbol = words[1];
  uint64_t buckets_at = 4 + 2 * uint64_t(words[2]), chains_at = buckets_at + buckets;
  if (chains_at > words.size())
    return 0;
  uint64_t last = 0;
  for (uint64_t at = buckets_at; at < chains_at; at++)
    last = std::max<uint64_t>(last, words[at]);
  if (last < first_symbol) // nothing is exported; imports come first
    return first_symbol;
  for (uint64_t at = chains_at + (last - first_symbol); at < words.size(); at++, last++)
    if (words[at] & 1)
      return last + 1;
  return 0;
}

} // namespace image
