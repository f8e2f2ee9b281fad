// Findings about the words of objects, ranked and silent on noise.
//
// One finding an object: the rule that says the most. "Header only" and "every fourth word" are
// shapes that a person recognises and knows what to do about; "hot and cold" is about words that
// are all used, some of them hardly; what is left is a pattern without a name, of which the share
// is said.

#include "analyze/objects.h"
#include "analyze/place.h"

#include "abi/records.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace analyze {
namespace {

constexpr double kMinShare = 0.01;         // of what all objects cost
constexpr uint64_t kMinWastedBytes = 4096; // in lines that were used
constexpr double kHardly =
    0.1; // a word so much colder than the hottest, or used by so few objects, is cold
constexpr double kHeaderShare = 0.5; // of an object's bytes, at most
constexpr double kBadlyUsed = 0.75;  // of the bytes of lines
constexpr double kHotShare = 0.9;    // of all hotness, in the hot part

struct Shape {
  std::string rule, says, action;
};

std::string ordinal(size_t n) {
  constexpr const char *kWords[] = {"",      "",      "second",  "third", "fourth",
                                    "fifth", "sixth", "seventh", "eighth"};
  return n < std::size(kWords) ? kWords[n] : fmt::format("{}th", n);
}

const char *unit_name(const ObjectRow &row) {
  return row.unit_bytes == 1 ? "byte" : "word";
}

// Is the word used by more than a few of the objects?
bool is_used(const ObjectWord &word) {
  return word.accessed_share > kHardly;
}

// Only words of one distance from each other are used, all over the object: every how many, if so.
std::optional<size_t> stride_of(const std::vector<ObjectWord> &words) {
  size_t first = 0;
  while (first < words.size() && !is_used(words[first]))
    first++;
  for (size_t stride = 2; stride <= 16 && first < stride; stride++) {
    if (words.size() < first + 2 * stride)
      continue;
    bool fits = true;
    for (size_t i = 0; i < words.size() && fits; i++)
      fits = is_used(words[i]) == (i % stride == first);
    if (fits)
      return stride;
  }
  return std::nullopt;
}

std::optional<Shape> strided(const ObjectRow &row) {
  auto stride = stride_of(row.positions.empty() ? row.words : row.positions);
  if (!stride)
    return std::nullopt;
  return Shape{"every_nth_word",
               fmt::format("only every {} {} of {} is used", ordinal(*stride), unit_name(row),
                           object_kind_text(row)),
               "keep what is used in an array of its own (a struct of arrays), so that its lines "
               "hold nothing else"};
}

// Bytes from the begin to the end of the last used word.
uint64_t used_end(const ObjectRow &row) {
  uint64_t end = 0;
  for (const ObjectWord &word : row.words)
    if (is_used(word))
      end = word.offset + row.cell_bytes;
  return end;
}

// What glibc's malloc takes for so many bytes: its word before them, in multiples of 16, 32 at least.
uint64_t chunk_bytes(uint64_t bytes) {
  return std::max<uint64_t>(32, (bytes + 8 + 15) / 16 * 16);
}

// Whether objects without their other bytes would take less memory, with a pointer to them instead.
bool is_smaller_without(const ObjectRow &row, uint64_t kept_bytes) {
  constexpr uint64_t kPointer = 8;
  return row.kind != "heap" || row.is_array() ||
         chunk_bytes(kept_bytes + kPointer) < chunk_bytes(row.sums.size_min);
}

std::optional<Shape> header_only(const ObjectRow &row) {
  const uint64_t end = used_end(row), size = row.sums.size_min;
  if (end == 0 || double(end) > kHeaderShare * double(size))
    return std::nullopt;
  const bool is_smaller = is_smaller_without(row, end);
  return Shape{"header_only",
               fmt::format("nothing behind the first {} of the {} of {} is used",
                           base::format_bytes(double(end)), base::format_bytes(double(size)),
                           object_kind_text(row)),
               is_smaller
                   ? "move the rest out of the object, behind a pointer or into an array of its "
                     "own; drop it, if nobody but counted code needs it"
                   : "keep what is used in one array for all of them: as an allocation of its own "
                     "a smaller object takes as much memory"};
}

// The least part from the begin, a multiple of 16 bytes, that has most of the hotness, if what follows is cold.
std::optional<Shape> hot_and_cold(const ObjectRow &row) {
  uint64_t hottest = 0;
  for (const ObjectWord &word : row.words)
    hottest = std::max(hottest, word.hotness);
  auto is_hot = [&](const ObjectWord &word) {
    return double(word.hotness) > kHardly * double(hottest);
  };
  uint64_t hot_bytes = 0, hot_end = 0, hotness = 0, cold_words = 0;
  for (const ObjectWord &word : row.words) {
    cold_words += word.used() && !is_hot(word);
    if (is_hot(word)) {
      hot_bytes += row.cell_bytes;
      hot_end = word.offset + row.cell_bytes;
      hotness += word.hotness;
    }
  }
  const uint64_t size = row.sums.size_max;
  if (!is_smaller_without(row, hot_bytes))
    return std::nullopt;
  if (row.words.size() < 4 || !cold_words || double(hot_bytes) > kHeaderShare * double(size) ||
      double(hotness) < kHotShare * double(row.sums.hotness))
    return std::nullopt;
  const bool at_begin = double(hot_end) <= kHeaderShare * double(size);
  return Shape{at_begin ? "hot_head_cold_tail" : "hot_and_cold",
               at_begin ? fmt::format("the first {} of the {} of {} are hot, the rest is cold",
                                      base::format_bytes(double(hot_end)),
                                      base::format_bytes(double(size)), object_kind_text(row))
                        : fmt::format("{} of the {} of {} are hot, and lie among cold ones",
                                      base::format_bytes(double(hot_bytes)),
                                      base::format_bytes(double(size)), object_kind_text(row)),
               "move the cold part into a struct of its own, which the hot one points to"};
}

std::optional<Shape> fragmented(const ObjectRow &row) {
  if (row.line_used_share() > kBadlyUsed)
    return std::nullopt;
  return Shape{"fragmented",
               fmt::format("{} of the bytes in the lines of {} are used",
                           base::format_share(row.line_used_share()), object_kind_text(row)),
               how_to_lay_out(row.type)};
}

std::string names_of_used(const ObjectRow &row) {
  std::string names;
  size_t count = 0;
  for (const ObjectWord &word : row.words)
    if (word.used() && !word.name.empty() && names.find(word.name) == std::string::npos &&
        count++ < 6)
      names += (names.empty() ? "" : ", ") + word.name;
  return names.empty() ? "" : "; used: " + names;
}

void find(ObjectsResult &result, const ObjectRow &row, double all) {
  const double share = all > 0 ? double(row.score()) / all : 0;
  if (share < kMinShare || row.words.empty() || !row.sums.used_units ||
      is_linked_by_library(row.type))
    return;
  // Bytes that lie in fetched lines, in all objects; or, for one object that is used again and again, each time.
  if (row.unused_line_bytes() < kMinWastedBytes && row.score() < kMinWastedBytes)
    return;
  std::optional<Shape> shape = strided(row);
  if (!shape)
    shape = hot_and_cold(row);
  if (!shape)
    shape = header_only(row);
  if (!shape)
    shape = fragmented(row);
  if (!shape)
    return;
  if (is_of_standard_library(row.type))
    shape->action = how_to_lay_out(row.type);
  static constexpr uint32_t kDoubts[] = {ASSAY_LOSS_uninstrumented_module, ASSAY_LOSS_hot_words,
                                         ASSAY_LOSS_odd_address, ASSAY_LOSS_forked_use};
  std::vector<std::string> doubts = losses_among(result.losses, kDoubts);
  if (row.kind == "heap")
    doubts.emplace_back(kUncountedUse);
  result.findings.push_back(
      {shape->rule,
       shape->says,
       row.kind == "global" && row.line ? fmt::format("{}:{}", row.file, row.line) : row.name,
       {double(row.unused_line_bytes()), "bytes"},
       share,
       fmt::format("{} of {} in {}, of which {} of the bytes are used{}",
                   base::format_counted(double(row.sums.count), "object"),
                   base::format_bytes(double(row.mean_size())),
                   base::format_counted(double(row.sums.used_lines), "used line"),
                   base::format_share(row.line_used_share()), names_of_used(row)),
       shape->action,
       std::move(doubts),
       {row.type, row.kind == "stack" ? "" : row.name, "", "", 0},
       Gain::kLineUse});
}

} // namespace

void find_object_findings(ObjectsResult &result) {
  const double all = double(result.total_score) / std::max(result.wasted_share, 1e-9);
  for (const ObjectRow &row : result.rows)
    find(result, row, result.wasted_share > 0 ? all : 0);
  base::stable_sort(result.findings,
                    [](const Finding &a, const Finding &b) { return a.weight > b.weight; });
}

} // namespace analyze
