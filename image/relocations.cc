// Relocations as a table of words.
//
// The problem: a pointer in the file's data is not what the program reads; in a position independent
// file the word is zero, and the truth is in one of three tables. The idea: apply the relocations
// once, at load bias 0, into one list by address; it serves look-ups and the search for pointers to
// code alike. Writing them into a copy of the data was refused: it costs the copy, and "not known"
// and "imported" have no bit pattern.
//
// A symbol that this file defines counts as its own definition, though another file could define it
// first (symbol interposition): that is what the program does when nobody interferes.

#include "image/relocations.h"

#include <algorithm>

namespace image {
namespace {

using namespace llvm::ELF;
using Kind = RelocatedWord::Kind;

RelocatedWord word_of(const Elf64_Rela &row, const SymbolTable &symbols) {
  RelocatedWord word;
  word.address = row.r_offset;
  uint64_t addend = static_cast<uint64_t>(row.r_addend);
  switch (row.getType()) {
  case R_X86_64_RELATIVE:
    word.kind = Kind::value;
    word.value = addend;
    break;
  case R_X86_64_IRELATIVE:
    word.kind = Kind::resolved;
    word.value = addend;
    break;
  case R_X86_64_64:
  case R_X86_64_GLOB_DAT:
  case R_X86_64_JUMP_SLOT: {
    // The last two ignore the addend by the ABI's formula.
    if (row.getType() != R_X86_64_64)
      addend = 0;
    uint32_t index = row.getSymbol();
    if (index >= symbols.rows.size())
      break;
    Elf64_Sym symbol = symbols.rows[index];
    word.symbol = addend ? 0 : index;
    if (symbol.st_shndx == SHN_UNDEF) {
      word.kind = Kind::imported;
    } else if (symbol.getType() == STT_GNU_IFUNC) {
      word.kind = Kind::resolved;
      word.value = symbol.st_value;
    } else if (symbol.getType() != STT_TLS) {
      word.kind = Kind::value;
      word.value = symbol.st_value + addend;
    }
    break;
  }
  default: break;
  }
  return word;
}

constexpr uint64_t kPackedBytes = uint64_t(63) * 8; // that one bitmap speaks of

// DT_RELR: an even word is the address of a slot; an odd one says by its upper 63 bits which of the
// next 63 words are slots too. The addend is in the slot. Addresses ascend, so that a file that says
// otherwise is not believed any further, and there are no more slots than words in the file.
void add_packed(const ElfTables &tables, std::vector<RelocatedWord> &words) {
  uint64_t next = 0;
  auto add = [&](uint64_t address) {
    Table<uint64_t> slot(tables.segments.bytes(address, 8));
    if (!slot.size())
      return false;
    words.push_back({address, slot[0], 0, Kind::value});
    return true;
  };
  for (uint64_t index = 0; index < tables.packed_relative.size(); index++) {
    uint64_t entry = tables.packed_relative[index];
    if (!(entry & 1)) {
      if (entry < next || !add(entry))
        return;
      next = entry + 8;
      continue;
    }
    for (uint64_t bits = entry >> 1, address = next; bits; bits >>= 1, address += 8)
      if ((bits & 1) && !add(address))
        return;
    if (next > UINT64_MAX - kPackedBytes)
      return;
    next += kPackedBytes;
  }
}

} // namespace

std::vector<RelocatedWord> relocated_words(const ElfTables &tables) {
  std::vector<RelocatedWord> words;
  uint64_t count = 0;
  for (const auto &table : tables.relocations)
    count += table.size();
  words.reserve(count);
  add_packed(tables, words);
  for (const auto &table : tables.relocations)
    for (uint64_t index = 0; index < table.size(); index++) {
      Elf64_Rela row = table[index];
      if (row.getType() != R_X86_64_NONE)
        words.push_back(word_of(row, tables.dynamic_symbols));
    }
  std::sort(words.begin(), words.end(),
            [](const RelocatedWord &a, const RelocatedWord &b) { return a.address < b.address; });
  size_t kept = 0;
  for (const RelocatedWord &word : words) {
    RelocatedWord *same =
        kept && words[kept - 1].address == word.address ? &words[kept - 1] : nullptr;
    if (!same)
      words[kept++] = word;
    else if (same->kind != word.kind || same->value != word.value || same->symbol != word.symbol)
      *same = {word.address, 0, 0, Kind::unknown};
  }
  words.resize(kept);
  return words;
}

} // namespace image
