// One view of a file's code, for those who decode it.
//
// The problem: where code is, where it begins, and who may jump there is said in a dozen tables, each
// of which may be missing. The idea: each table has its own reader (elf_tables, relocations,
// unwind_ranges, landing_pads, plt_stubs); function_ranges decides between them; here they are put
// together once, into sorted lists that answer by binary search.
//
// Reading on demand was refused: functions need symbols, unwind tables and stubs at once, and the
// whole of a library of 100 MB takes less time than decoding one of its large functions' callers.
// Names alone are left in the file until somebody asks for the import of a slot.
//
// What it does not do: look into code, but for stubs; lines and types (image/symbols.h,
// image/layout.h).

#include "image/executable.h"

#include "image/go_functions.h"
#include "image/unwind_ranges.h"

#include <algorithm>

namespace image {

Executable::Executable(const std::string &path) : path_(path), mapped_(std::in_place, path) {
  read(mapped_->bytes());
  release_pages(); // tables and searched data, mostly; code is decoded later
}

Executable::Executable(std::vector<std::byte> bytes, std::string name)
    : path_(std::move(name)), owned_(std::move(bytes)) {
  read(owned_);
}

void Executable::read(std::span<const std::byte> file) {
  ElfTables tables(file, path_);
  for (std::byte byte : tables.build_id)
    build_id_.push_back(static_cast<uint8_t>(byte));
  position_independent_ = tables.position_independent;
  carries_runtime_ = tables.carried.has_value();
  patches_code_ = tables.patches_code;
  entry_ = tables.entry;
  segments_ = tables.segments;
  dynamic_symbols_ = tables.dynamic_symbols;
  relocated_words_ = relocated_words(tables);
  unwind_ranges_ = image::unwind_ranges(tables);
  FunctionRanges ranges = function_ranges(tables, unwind_ranges_, relocated_words_);
  functions_ = std::move(ranges.functions);
  stubs_ = std::move(ranges.stubs);
  landing_pads_ = image::landing_pads(tables, unwind_ranges_);
  std::sort(unwind_ranges_.begin(), unwind_ranges_.end(),
            [](const UnwindRange &a, const UnwindRange &b) { return a.begin < b.begin; });
  find_code_pointers(tables);
  for (const CodeRegion &region : tables.code)
    code_regions_.emplace_back(region.begin, region.end);
  add_go_functions(tables);
}

// What Go's own table says takes the place of whatever overlaps it: an entry without a size, or one
// range for all code.
void Executable::add_go_functions(const ElfTables &tables) {
  std::vector<CodeRange> found = go_functions(
      segments_, tables.relro, [&](uint64_t address) { return relocated_word(address); },
      [&] { release_pages(); });
  std::erase_if(found, [&](const CodeRange &range) {
    return std::none_of(code_regions_.begin(), code_regions_.end(), [&](const auto &region) {
      return region.first <= range.begin && range.end <= region.second;
    });
  });
  if (found.empty())
    return;
  std::sort(found.begin(), found.end(),
            [](const CodeRange &a, const CodeRange &b) { return a.begin < b.begin; });
  for (size_t i = 0; i + 1 < found.size(); i++)
    found[i].end = std::min(found[i].end, found[i + 1].begin);
  std::erase_if(found, [](const CodeRange &range) { return range.begin >= range.end; });
  std::erase_if(functions_, [&](const CodeRange &range) {
    auto after = std::upper_bound(
        found.begin(), found.end(), range.begin,
        [](uint64_t address, const CodeRange &each) { return address < each.end; });
    return after != found.end() && after->begin < range.end;
  });
  functions_.insert(functions_.end(), found.begin(), found.end());
  std::sort(functions_.begin(), functions_.end(),
            [](const CodeRange &a, const CodeRange &b) { return a.begin < b.begin; });
}

// A sequence's description ends with where the kernel goes on instead of it, before which a signature stands. The
// word that holds this address may be its end.
void Executable::note_restartable(uint64_t word, uint64_t abort) {
  constexpr uint32_t kSignature = 0x53053053;  // RSEQ_SIG
  constexpr uint64_t kBegin = 16, kLength = 8; // before the word
  if (read<uint32_t>(abort - sizeof kSignature) != kSignature)
    return;
  const auto begin = relocated_word(word - kBegin), length = read<uint64_t>(word - kLength);
  if (begin && length && *length && executable_at(*begin))
    restartable_sequences_.push_back({*begin, *begin + *length, abort});
}

void Executable::find_code_pointers(const ElfTables &tables) {
  auto add = [&, region = tables.code.end()](uint64_t word, uint64_t address) mutable {
    // Neighbouring words mostly point into the same region.
    if (region == tables.code.end() || address < region->begin || address >= region->end) {
      region = std::upper_bound(
          tables.code.begin(), tables.code.end(), address,
          [](uint64_t wanted, const CodeRegion &each) { return wanted < each.end; });
      if (region == tables.code.end() || address < region->begin)
        return;
    }
    code_pointers_.push_back(address);
    note_restartable(word, address);
  };
  for (const RelocatedWord &word : relocated_words_)
    if (word.kind == RelocatedWord::Kind::value || word.kind == RelocatedWord::Kind::resolved)
      add(word.address, word.value);
  if (!position_independent_)
    for (const AddressRange &range : tables.data) {
      uint64_t skipped = (0 - range.begin) & 7;
      if (skipped >= range.end - range.begin)
        continue;
      std::span<const std::byte> bytes = bytes_from(range.begin + skipped);
      uint64_t size = range.end - range.begin - skipped;
      Table<uint64_t> words(bytes.first(std::min<uint64_t>(size, bytes.size())));
      for (uint64_t index = 0; index < words.size(); index++) {
        add(range.begin + skipped + index * sizeof(uint64_t), words[index]);
        if (index * sizeof(uint64_t) % kReleasedBytes == kReleasedBytes - sizeof(uint64_t))
          release_pages();
      }
    }
  std::sort(code_pointers_.begin(), code_pointers_.end());
  code_pointers_.erase(std::unique(code_pointers_.begin(), code_pointers_.end()),
                       code_pointers_.end());
}

void Executable::drop_unwinding() {
  unwind_ranges_ = std::vector<UnwindRange>(); // a list of nothing would leave their memory
  landing_pads_ = std::vector<LandingPad>();
  code_pointers_ = std::vector<uint64_t>();
}

bool Executable::executable_at(uint64_t address) const {
  const Segment *segment = segments_.at(address);
  return segment && segment->executable;
}

bool Executable::writable_at(uint64_t address) const {
  const Segment *segment = segments_.at(address);
  return segment && segment->writable;
}

std::optional<uint64_t> Executable::relocated_word(uint64_t address) const {
  auto near = std::lower_bound(
      relocated_words_.begin(), relocated_words_.end(), address < 7 ? 0 : address - 7,
      [](const RelocatedWord &each, uint64_t wanted) { return each.address < wanted; });
  if (near == relocated_words_.end() || (near->address > address && near->address - address >= 8))
    return read<uint64_t>(address);
  bool is_alone =
      std::next(near) == relocated_words_.end() || std::next(near)->address - address >= 8;
  if (near->address == address && is_alone && near->kind == RelocatedWord::Kind::value)
    return near->value;
  return std::nullopt;
}

const CodeRange *Executable::function_at(uint64_t address) const {
  return image::function_at(functions_, address);
}

std::string_view Executable::import_of_stub(uint64_t address) const {
  auto at =
      std::lower_bound(stubs_.begin(), stubs_.end(), address,
                       [](const PltStub &each, uint64_t wanted) { return each.begin < wanted; });
  return at != stubs_.end() && at->begin == address ? import_of_slot(at->slot) : std::string_view();
}

std::string_view Executable::import_of_slot(uint64_t address) const {
  const RelocatedWord *word = word_at(relocated_words_, address);
  if (!word || !word->symbol)
    return {};
  return dynamic_symbols_.name(dynamic_symbols_.rows[word->symbol]);
}

} // namespace image
