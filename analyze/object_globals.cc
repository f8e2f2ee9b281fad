// Runs of words are cut at the ends of symbols, and folded as the runtime folds objects of the
// heap: so that both are drawn, ranked and judged alike. A word that two small variables share is
// both's.

#include "analyze/object_globals.h"

#include "image/elf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace analyze {
namespace {

using image::DataSymbol;

uint64_t end_of(const DataSymbol &symbol) {
  return symbol.address + symbol.size;
}

// One variable, as its words come in ascending order.
class Fold {
public:
  Fold(uint64_t begin, uint64_t size, uint64_t unit_bytes)
      : begin_(begin), end_(begin + size), unit_(unit_bytes),
        cell_(assay_cell_units(size, unit_bytes)) {
    sums_.count = 1;
    sums_.bytes = sums_.size_min = sums_.size_max = size;
    sums_.units = number(end_ - 1) - number(begin_) + 1;
    sums_.lines = (end_ - 1) / ASSAY_LINE_BYTES - begin_ / ASSAY_LINE_BYTES + 1;
    sums_.on_line = begin_ % ASSAY_LINE_BYTES == 0;
    cells_.resize(static_cast<size_t>((sums_.units + cell_ - 1) / cell_));
    positions_.resize(cell_ > 1 ? assay_line_positions(unit_) : 0);
  }

  void add(uint64_t address, uint64_t hotness) {
    if (address / ASSAY_LINE_BYTES != line_)
      end_line();
    line_ = address / ASSAY_LINE_BYTES;
    const uint64_t index = number(std::max(address, begin_)) - number(begin_);
    add(cells_[static_cast<size_t>(index / cell_)], hotness);
    if (!positions_.empty())
      add(positions_[static_cast<size_t>(index) % positions_.size()], hotness);
    sums_.hotness += hotness;
    line_used_++;
    line_hotness_ += hotness;
    line_hottest_ = std::max(line_hottest_, hotness);
  }

  void finish(ObjectRow &row) {
    end_line();
    row.sums = sums_;
    row.unit_bytes = unit_;
    row.cell_bytes = unit_ * cell_;
    row.class_bytes = sums_.bytes;
    for (size_t i = 0; i < cells_.size(); i++)
      row.words.push_back(word(cells_[i], i * row.cell_bytes, cell_));
    for (size_t i = 0; i < positions_.size(); i++)
      row.positions.push_back(word(positions_[i], i * unit_, sums_.units / positions_.size()));
  }

private:
  uint64_t number(uint64_t address) const { return address / unit_; }
  static void add(AssayWordCell &cell, uint64_t hotness) {
    cell.hotness += hotness;
    cell.accessed++;
  }
  static ObjectWord word(const AssayWordCell &cell, uint64_t offset, uint64_t of) {
    ObjectWord result;
    result.offset = offset;
    result.hotness = cell.hotness;
    result.accessed_share = of ? std::min(1.0, double(cell.accessed) / double(of)) : 0;
    return result;
  }

  void end_line() {
    if (!line_used_)
      return;
    const uint64_t from = std::max(line_ * ASSAY_LINE_BYTES, begin_);
    const uint64_t last = std::min((line_ + 1) * ASSAY_LINE_BYTES, end_) - 1;
    const uint64_t units = number(last) - number(from) + 1;
    sums_.used_units += line_used_;
    sums_.used_lines++;
    sums_.line_units += units;
    sums_.wasted_byte_samples += (units * line_hottest_ - line_hotness_) * unit_;
    line_used_ = line_hottest_ = line_hotness_ = 0;
  }

  uint64_t begin_, end_, unit_;
  uint32_t cell_;
  AssayObjectSums sums_ = {};
  std::vector<AssayWordCell> cells_, positions_;
  uint64_t line_ = 0, line_used_ = 0, line_hottest_ = 0, line_hotness_ = 0;
};

// What no symbol names.
struct Nameless {
  uint64_t units = 0, hotness = 0;
};

class ModuleGlobals {
public:
  ModuleGlobals(const profile::ObjectGlobals &globals, const image::Data &data)
      : globals_(globals), data_(data), unit_(profile::object_unit_bytes(globals.encoding)) {}

  // Calls f(symbol, fold) for each variable with a used word.
  template <typename F> Nameless each(F f) {
    Nameless nameless;
    std::map<const DataSymbol *, Fold> open;
    auto close_before = [&](uint64_t address) {
      for (auto at = open.begin(); at != open.end();)
        if (end_of(*at->first) <= address) {
          f(*at->first, at->second);
          at = open.erase(at);
        } else {
          ++at;
        }
    };
    for (const AssayWordRun &run : globals_.runs)
      for (uint64_t i = 0; i < run.units; i++) {
        const uint64_t address = run.offset + i * unit_;
        auto [first, last] = symbols_at(address);
        if (first != at_) {
          close_before(address);
          at_ = first;
        }
        if (first == last) {
          nameless.units++;
          nameless.hotness += run.hotness;
        }
        for (; first != last; ++first)
          open.try_emplace(first, first->address, first->size, unit_)
              .first->second.add(address, run.hotness);
      }
    close_before(UINT64_MAX);
    return nameless;
  }

private:
  using Range = std::pair<const DataSymbol *, const DataSymbol *>;
  Range symbols_at(uint64_t address) {
    const auto *begin = data_.symbols.data(), *end = begin + data_.symbols.size();
    if (known_.first && known_.first != known_.second && known_.first + 1 == known_.second &&
        known_.first->address <= address && address + unit_ <= end_of(*known_.first))
      return known_;
    const auto *first = std::partition_point(
        begin, end, [&](const DataSymbol &symbol) { return end_of(symbol) <= address; });
    const auto *last = std::partition_point(
        first, end, [&](const DataSymbol &symbol) { return symbol.address < address + unit_; });
    known_ = {first, last};
    return known_;
  }

  const profile::ObjectGlobals &globals_;
  const image::Data &data_;
  const uint64_t unit_;
  const DataSymbol *at_ = nullptr;
  Range known_ = {};
};

} // namespace

std::vector<ObjectRow> object_globals(const profile::Profile &profile, image::Symbols &symbols) {
  static const image::Data kNothing;
  std::vector<ObjectRow> rows;
  for (const profile::ObjectGlobals &globals : profile.object_globals) {
    const bool known = globals.module.known();
    const image::Data &data = known ? symbols.data(globals.module.v) : kNothing;
    const std::string path = known ? profile.modules[globals.module.v].path : "";
    Nameless nameless =
        ModuleGlobals(globals, data).each([&](const DataSymbol &symbol, Fold &fold) {
          ObjectRow &row = rows.emplace_back();
          row.kind = "global";
          row.name = image::demangled(symbol.linkage_name);
          row.module = path;
          auto declaration = symbols.declaration(globals.module.v, symbol.address);
          row.file = declaration.file;
          row.line = declaration.line;
          fold.finish(row);
        });
    if (!nameless.units)
      continue;
    ObjectRow &row = rows.emplace_back();
    row.kind = "global";
    row.name = "constants of " + (path.empty() ? "an unknown module" : image::base_name(path));
    row.module = path;
    row.unit_bytes = row.cell_bytes = profile::object_unit_bytes(globals.encoding);
    row.sums.count = 1;
    row.sums.units = row.sums.used_units = row.sums.line_units = nameless.units;
    row.sums.bytes = row.sums.size_min = row.sums.size_max = nameless.units * row.unit_bytes;
    row.sums.hotness = nameless.hotness;
  }
  return rows;
}

} // namespace analyze
