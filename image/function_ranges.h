// The functions of a file as ranges of machine code.
#pragma once

#include "image/elf_tables.h"
#include "image/plt_stubs.h"
#include "image/relocations.h"
#include "image/unwind_ranges.h"

#include <cstdint>
#include <string>
#include <vector>

namespace image {

// By what a function is known: a symbol; the unwind tables (whether or not a symbol names it); as a
// stub; as a place where the loader enters (entry point, DT_INIT, DT_FINI); by code or pointers that lead
// there, or because it can be decoded, and nothing known leads there (binary/discovery.h); Go's own table.
enum class FoundBy { symbol, unwind, plt, entry, code, sweep, go };

struct CodeRange {             // one function, or the .cold part of one
  uint64_t begin = 0, end = 0; // end exclusive
  std::string name;            // linkage name; empty if none is known; "malloc@plt" for a stub
  FoundBy found_by = FoundBy::symbol;
  // No table says where it ends.
  bool has_guessed_end() const { return found_by == FoundBy::code || found_by == FoundBy::sweep; }
};

struct FunctionRanges {
  std::vector<CodeRange> functions; // by begin, not overlapping, each within a CodeRegion
  std::vector<PltStub> stubs;       // those among the functions that have a slot, by begin
};

FunctionRanges function_ranges(const ElfTables &tables, const std::vector<UnwindRange> &frames,
                               const std::vector<RelocatedWord> &words);

// The function that covers an address, of functions by begin; else nullptr.
const CodeRange *function_at(const std::vector<CodeRange> &functions, uint64_t address);

// The word at this address if it is relocated; else nullptr.
const RelocatedWord *word_at(const std::vector<RelocatedWord> &words, uint64_t address);

} // namespace image
