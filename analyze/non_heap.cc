// From blocks of 64 bytes to names of globals.
//
// The problem: counters know blocks, people know variables, and a block may hold several. The idea:
// the symbols that lie in one block, whatever their number, are what the block belongs to; a large
// array whose last block holds a neighbour too has that block in a row of its own, named for both.
// Dividing a shared block's accesses among its symbols was refused: any key would be invented.
//
// The compiler aligns the globals whose accesses it counts to 64 bytes, so a symbol that begins on a
// block has its blocks to itself: what follows it in the last one was built without Assay.
//
// Symbols come sorted by address with ends in order (image::Data), so those of a block are a range
// of indices, and the range is the key of the row.

#include "analyze/non_heap.h"

#include "base/stable_sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace analyze {
namespace {

constexpr uint64_t kBlock = 64; // what the compiler aligns globals to, and most counters cover

uint64_t end_of(const image::DataSymbol &symbol) {
  return symbol.address + symbol.size;
}

// Bytes of the symbol in [begin, end).
uint64_t overlap(const image::DataSymbol &symbol, uint64_t begin, uint64_t end) {
  uint64_t from = std::max(symbol.address, begin), to = std::min(end_of(symbol), end);
  return from < to ? to - from : 0;
}

// Indices [first, last) of the symbols that lie in a block.
struct Range {
  size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

bool has_own_blocks(const image::DataSymbol &symbol) {
  return symbol.address % kBlock == 0;
}

Range symbols_in(const std::vector<image::DataSymbol> &symbols, uint64_t block) {
  auto first = std::partition_point(symbols.begin(), symbols.end(),
                                    [&](const auto &symbol) { return end_of(symbol) <= block; });
  if (first != symbols.end() && first->address <= block && has_own_blocks(*first)) {
    auto index = static_cast<size_t>(first - symbols.begin());
    return {index, index + 1};
  }
  auto last = std::partition_point(
      first, symbols.end(), [&](const auto &symbol) { return symbol.address < block + kBlock; });
  return {static_cast<size_t>(first - symbols.begin()),
          static_cast<size_t>(last - symbols.begin())};
}

// Bytes of a symbol in the blocks that it has to itself.
uint64_t own_bytes(const std::vector<image::DataSymbol> &symbols, size_t index) {
  const image::DataSymbol &symbol = symbols[index];
  if (has_own_blocks(symbol))
    return symbol.size;
  uint64_t begin = symbol.address, end = end_of(symbol);
  if (index > 0 && end_of(symbols[index - 1]) > begin / kBlock * kBlock)
    begin = (begin / kBlock + 1) * kBlock;
  if (index + 1 < symbols.size() &&
      symbols[index + 1].address < (end - 1) / kBlock * kBlock + kBlock)
    end = (end - 1) / kBlock * kBlock;
  return overlap(symbol, begin, end);
}

std::string joined_name(const std::vector<image::DataSymbol> &symbols, Range range) {
  std::string name = image::demangled(symbols[range.first].linkage_name);
  size_t count = range.last - range.first;
  if (count == 1)
    return name;
  std::string second = image::demangled(symbols[range.first + 1].linkage_name);
  return count == 2 ? name + " and " + second
                    : fmt::format("{}, {} and {} more", name, second, count - 2);
}

GlobalRow row_of(const profile::Profile &profile, image::Symbols &symbols, profile::ModuleId module,
                 Range range, bool constant) {
  GlobalRow row;
  row.module = module.known() ? profile.modules[module.v].path : "";
  if (range.empty()) {
    row.name = fmt::format("{} of {}", constant ? "constants" : "data",
                           row.module.empty() ? "an unknown module" : image::base_name(row.module));
    return row;
  }
  const auto &named = symbols.data(module.v).symbols;
  row.name = joined_name(named, range);
  if (range.last - range.first == 1) {
    row.size = own_bytes(named, range.first);
    auto declaration = symbols.declaration(module.v, named[range.first].address);
    row.file = declaration.file;
    row.line = declaration.line;
  } else { // all of them share this one block
    uint64_t block = named[range.first + 1].address / kBlock * kBlock;
    for (size_t index = range.first; index < range.last; index++)
      row.size += overlap(named[index], block, block + kBlock);
  }
  return row;
}

} // namespace

std::vector<GlobalRow> globals(const profile::Profile &profile, image::Symbols &symbols,
                               uint64_t block_bytes) {
  // module, first and last symbol, whether it is constant
  using Key = std::tuple<profile::ModuleId, size_t, size_t, bool>;
  static const image::Data kNothing;
  std::map<Key, GlobalRow> rows;
  for (const profile::NonHeapBlock &block : profile.non_heap) {
    if (block.kind != ASSAY_NON_HEAP_GLOBALS)
      continue;
    const image::Data &data = block.module.known() ? symbols.data(block.module.v) : kNothing;
    Range range = symbols_in(data.symbols, block.offset);
    bool constant = range.empty() && data.has_constants(block.offset, block.offset + kBlock);
    if (range.empty())
      range = {};
    auto [row, is_new] = rows.try_emplace({block.module, range.first, range.last, constant});
    if (is_new)
      row->second = row_of(profile, symbols, block.module, range, constant);
    row->second.reads += block.reads;
    row->second.writes += block.writes;
    if (range.empty())
      row->second.touched_bytes += block_bytes;
    for (size_t index = range.first; index < range.last; index++)
      row->second.touched_bytes +=
          overlap(data.symbols[index], block.offset, block.offset + block_bytes);
  }
  std::vector<GlobalRow> result;
  result.reserve(rows.size());
  for (auto &[key, row] : rows)
    result.push_back(std::move(row));
  base::stable_sort(
      result, [](const GlobalRow &a, const GlobalRow &b) { return a.accesses() > b.accesses(); });
  return result;
}

std::vector<StackRow> stacks(const profile::Profile &profile) {
  std::map<uint32_t, StackRow> rows;
  for (const profile::NonHeapBlock &block : profile.non_heap) {
    if (block.kind != ASSAY_NON_HEAP_STACK)
      continue;
    StackRow &row = rows[block.thread];
    row.thread = block.thread;
    row.reads += block.reads;
    row.writes += block.writes;
    row.deepest_bytes = std::max(row.deepest_bytes, block.offset);
  }
  std::vector<StackRow> result;
  result.reserve(rows.size());
  for (const auto &[thread, row] : rows)
    result.push_back(row);
  return result;
}

} // namespace analyze
