// Where functions begin and end, from sources that contradict each other.
//
// The problem: symbols may be stripped, lie within functions, overlap, or have no size; unwind tables
// have no names, cover a whole table of stubs by one entry, and lack assembler code and the start-up
// files. The idea: an order of trust. The frame entries of the unwind tables are what the program's
// own unwinder goes by, so they are the truth where there is one, save that stubs replace the entry
// that covers them; symbols name entries that begin where they do, and add ranges only in what is left;
// the loader's entry points add ranges only in what is left after that.
//
// Splitting frame entries at symbols was refused: labels of assembler code and aliases into the
// middle (glibc's vector string functions have them) would cut loops in two.
//
// Code that none of them covers (assembler without frame entries in stripped files) is not found
// here; a reader of code may find it by calls.

#include "image/function_ranges.h"

#include <algorithm>
#include <optional>

namespace image {
namespace {

using namespace llvm::ELF;

// Keeps those that begin in code, cuts them to it and to the next one. Of several that begin at one
// address the longest counts.
std::vector<AddressRange> within_code(const std::vector<UnwindRange> &frames,
                                      const std::vector<CodeRegion> &code) {
  std::vector<AddressRange> ranges;
  ranges.reserve(frames.size());
  for (const UnwindRange &frame : frames)
    ranges.push_back({frame.begin, frame.end});
  std::sort(ranges.begin(), ranges.end(), [](const AddressRange &a, const AddressRange &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<AddressRange> kept;
  kept.reserve(ranges.size());
  auto region = code.begin();
  for (const AddressRange &range : ranges) {
    while (region != code.end() && region->end <= range.begin)
      region++;
    if (region == code.end())
      break;
    if (range.begin < region->begin || (!kept.empty() && kept.back().begin == range.begin))
      continue;
    if (!kept.empty())
      kept.back().end = std::min(kept.back().end, range.begin);
    kept.push_back({range.begin, std::min(range.end, region->end)});
  }
  return kept;
}

class Builder {
public:
  Builder(const ElfTables &tables, const std::vector<RelocatedWord> &words)
      : tables_(tables), words_(words) {
    for (const Segment &segment : tables.segments.all())
      name_budget_ += 4 * segment.file_size;
    name_budget_ += 4 * tables.static_symbols.strings.size();
  }

  FunctionRanges build(const std::vector<UnwindRange> &frames) {
    std::vector<AddressRange> ranges = within_code(frames, tables_.code);
    find_stubs(ranges);
    auto by_begin = [](const CodeRange &a, const CodeRange &b) { return a.begin < b.begin; };
    std::sort(functions_.begin(), functions_.end(), by_begin);
    std::vector<Candidate> candidates = symbols(tables_.static_symbols);
    if (candidates.empty())
      candidates = symbols(tables_.dynamic_symbols);
    add_entries(candidates);
    place(candidates);
    std::sort(functions_.begin(), functions_.end(), by_begin);
    name_resolved_stubs();
    std::erase_if(stubs_, [](const PltStub &stub) { return !stub.slot; });
    return {std::move(functions_), std::move(stubs_)};
  }

private:
  struct Candidate {
    uint64_t address = 0, size = 0;
    int rank = 0; // smaller is better
    uint32_t symbol = 0;
    FoundBy found_by = FoundBy::symbol;
  };

  // A name, as long as names stay in proportion to the file: a hostile one could give the same long
  // name to each of its symbols.
  std::string_view name_of(const SymbolTable &table, uint32_t symbol) {
    if (!name_budget_)
      return {};
    Elf64_Sym row = table.rows[symbol];
    if (!row.st_name)
      return {};
    std::string_view name = table.name(row);
    uint64_t looked_at = name.empty() ? SymbolTable::kLongestName : name.size() + 1;
    name_budget_ -= std::min(name_budget_, looked_at);
    return name;
  }

  bool in_code(uint64_t address) const { return region_at(address) != nullptr; }

  const CodeRegion *region_at(uint64_t address) const {
    auto after = std::upper_bound(
        tables_.code.begin(), tables_.code.end(), address,
        [](uint64_t wanted, const CodeRegion &each) { return wanted < each.begin; });
    if (after == tables_.code.begin() || std::prev(after)->end <= address)
      return nullptr;
    return &*std::prev(after);
  }

  // Adds the stubs, and of the frame entries what is not within a table of stubs.
  void find_stubs(const std::vector<AddressRange> &ranges) {
    std::vector<AddressRange> plts;
    for (const CodeRegion &region : tables_.code)
      if (region.is_plt && add_stubs({region.begin, region.end}, region.entry_size, false))
        plts.push_back({region.begin, region.end});
    auto plt = plts.begin();
    for (AddressRange range : ranges) {
      while (plt != plts.end() && plt->end <= range.begin)
        plt++;
      // Before, between and behind the tables that it reaches into.
      for (auto each = plt; each != plts.end() && each->begin < range.end; each++) {
        if (range.begin < each->begin)
          add_frame({range.begin, each->begin});
        range.begin = std::min(range.end, std::max(range.begin, each->end));
      }
      if (range.begin < range.end)
        add_frame(range);
    }
    std::sort(stubs_.begin(), stubs_.end(),
              [](const PltStub &a, const PltStub &b) { return a.begin < b.begin; });
  }

  void add_frame(AddressRange range) {
    if (tables_.has_sections || !add_stubs(range, 0, true))
      functions_.push_back({range.begin, range.end, {}, FoundBy::unwind});
  }

  // `must_be_plt`: nothing but its look says that it is a table of stubs.
  bool add_stubs(AddressRange range, uint64_t entry_size, bool must_be_plt) {
    constexpr uint64_t kLongestStart = 32;
    if (must_be_plt && (range.end - range.begin) % 8 != 0)
      return false;
    std::vector<PltStub> stubs = plt_stubs(tables_, range, entry_size);
    if (stubs.empty())
      return false;
    if (must_be_plt) {
      uint64_t end = range.begin;
      for (const PltStub &stub : stubs) {
        bool is_stub = stub.slot ? word_at(words_, stub.slot) != nullptr
                                 : stub.end - stub.begin <= kLongestStart;
        if (stub.begin != end || !is_stub)
          return false;
        end = stub.end;
      }
      if (end != range.end)
        return false;
    }
    for (const PltStub &stub : stubs) {
      CodeRange function{stub.begin, stub.end, {}, FoundBy::plt};
      const RelocatedWord *word = stub.slot ? word_at(words_, stub.slot) : nullptr;
      if (word && word->symbol)
        if (auto name = name_of(tables_.dynamic_symbols, word->symbol); !name.empty())
          function.name = std::string(name) + "@plt";
      functions_.push_back(std::move(function));
      stubs_.push_back(stub);
    }
    return true;
  }

  // The functions of a table that lie in code, one at an address: the best name, the largest size.
  std::vector<Candidate> symbols(const SymbolTable &table) {
    names_ = &table;
    std::vector<Candidate> all;
    for (uint64_t index = 1; index < table.rows.size() && index <= UINT32_MAX; index++) {
      Elf64_Sym row = table.rows[index];
      bool is_function = row.getType() == STT_FUNC || row.getType() == STT_GNU_IFUNC;
      if (is_function && row.st_shndx != SHN_UNDEF && in_code(row.st_value))
        all.push_back({row.st_value, row.st_size, row.getBinding() == STB_GLOBAL ? 0 : 1,
                       static_cast<uint32_t>(index), FoundBy::symbol});
    }
    std::sort(all.begin(), all.end(), [](const Candidate &a, const Candidate &b) {
      return a.address != b.address ? a.address < b.address : a.rank < b.rank;
    });
    size_t kept = 0;
    for (size_t first = 0, next = 0; first < all.size(); first = next) {
      Candidate best = all[first];
      std::optional<std::string_view> name; // asked for only where there is a choice
      for (next = first + 1; next < all.size() && all[next].address == best.address; next++) {
        uint64_t size = std::max(best.size, all[next].size);
        if (all[next].rank == best.rank) {
          if (!name)
            name = name_of(table, best.symbol);
          auto other = name_of(table, all[next].symbol);
          if (!other.empty() && (name->empty() || other < *name)) {
            best = all[next];
            name = other;
          }
        }
        best.size = size;
      }
      all[kept++] = best;
    }
    all.resize(kept);
    return all;
  }

  void add_entries(std::vector<Candidate> &candidates) {
    for (std::optional<uint64_t> address :
         {tables_.entry, tables_.dynamic(DT_INIT), tables_.dynamic(DT_FINI)}) {
      if (!address || !in_code(*address))
        continue;
      auto at = std::lower_bound(
          candidates.begin(), candidates.end(), *address,
          [](const Candidate &each, uint64_t wanted) { return each.address < wanted; });
      if (at == candidates.end() || at->address != *address)
        candidates.insert(at, {*address, 0, 2, 0, FoundBy::entry});
    }
  }

  // Names the ranges that candidates begin, and adds ranges for those that lie in none. A candidate
  // of known size keeps those that lie wholly within it out, as a frame entry does.
  void place(const std::vector<Candidate> &candidates) {
    const size_t known = functions_.size();
    size_t next = 0;        // first known range that begins behind the candidate
    size_t last = SIZE_MAX; // the range added last
    bool last_has_size = false;
    for (const Candidate &candidate : candidates) {
      while (next < known && functions_[next].begin <= candidate.address)
        next++;
      auto name = [&] {
        return candidate.symbol ? name_of(*names_, candidate.symbol) : std::string_view();
      };
      if (next > 0 && candidate.address < functions_[next - 1].end) {
        CodeRange &range = functions_[next - 1];
        if (range.begin == candidate.address && range.name.empty())
          range.name = name();
        continue;
      }
      uint64_t end = region_at(candidate.address)->end;
      if (next < known)
        end = std::min(end, functions_[next].begin);
      bool has_size = candidate.size && candidate.size <= end - candidate.address;
      if (has_size)
        end = candidate.address + candidate.size;
      if (last != SIZE_MAX && candidate.address < functions_[last].end) {
        if (last_has_size && end <= functions_[last].end)
          continue;
        functions_[last].end = candidate.address;
      }
      last = functions_.size();
      last_has_size = has_size;
      functions_.push_back({candidate.address, end, std::string(name()), candidate.found_by});
    }
  }

  // A stub through a word that a resolver fills has no import; the resolver has its function's name.
  void name_resolved_stubs() {
    for (const PltStub &stub : stubs_) {
      const RelocatedWord *word = stub.slot ? word_at(words_, stub.slot) : nullptr;
      if (!word || word->kind != RelocatedWord::Kind::resolved)
        continue;
      CodeRange *itself = function_at(stub.begin), *resolver = function_at(word->value);
      if (!itself || !resolver || !itself->name.empty() || resolver->name.empty() ||
          resolver->name.size() > name_budget_)
        continue;
      name_budget_ -= resolver->name.size();
      itself->name = resolver->name + "@plt";
    }
  }

  CodeRange *function_at(uint64_t begin) {
    auto at = std::lower_bound(
        functions_.begin(), functions_.end(), begin,
        [](const CodeRange &each, uint64_t wanted) { return each.begin < wanted; });
    return at != functions_.end() && at->begin == begin ? &*at : nullptr;
  }

  const ElfTables &tables_;
  const std::vector<RelocatedWord> &words_;
  const SymbolTable *names_ = nullptr; // of the candidates
  uint64_t name_budget_ = 1 << 16;
  std::vector<CodeRange> functions_;
  std::vector<PltStub> stubs_;
};

} // namespace

FunctionRanges function_ranges(const ElfTables &tables, const std::vector<UnwindRange> &frames,
                               const std::vector<RelocatedWord> &words) {
  FunctionRanges ranges = Builder(tables, words).build(frames);
  ranges.functions.shrink_to_fit(); // they stay as long as the file is open
  return ranges;
}

const CodeRange *function_at(const std::vector<CodeRange> &functions, uint64_t address) {
  auto after =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](uint64_t wanted, const CodeRange &each) { return wanted < each.begin; });
  if (after == functions.begin() || std::prev(after)->end <= address)
    return nullptr;
  return &*std::prev(after);
}

const RelocatedWord *word_at(const std::vector<RelocatedWord> &words, uint64_t address) {
  auto at = std::lower_bound(
      words.begin(), words.end(), address,
      [](const RelocatedWord &each, uint64_t wanted) { return each.address < wanted; });
  return at != words.end() && at->address == address ? &*at : nullptr;
}

} // namespace image
