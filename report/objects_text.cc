// `assay objects` for people: what to change, a table of objects, and the first of them drawn as maps of words.
//
// A map has a line for each cache line, as if the object began on one, a column for each word.
// Heights are logarithmic: a word that is used half as often as the hottest is an eighth lower, so
// that cold words can still be told from unused ones.

#include "report/objects_report.h"

#include "abi/sites.h"
#include "analyze/place.h"
#include "analyze/type_names.h"
#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace report {
namespace {

using analyze::ObjectRow;
using analyze::ObjectsResult;
using analyze::ObjectWord;
using Align = Table::Align;

constexpr size_t kColumns = 16; // words of a line
constexpr size_t kMaxMapLines = 16;
const char *const kHeights[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string count(uint64_t value) {
  return base::format_count(double(value));
}
std::string bytes(uint64_t value) {
  return base::format_bytes(double(value));
}

const char *height(const ObjectWord &word, uint64_t hottest) {
  if (!word.used())
    return kHeights[0];
  double below = std::log2(double(hottest) / double(std::max<uint64_t>(word.hotness, 1)));
  return kHeights[static_cast<size_t>(std::clamp(8 - below, 1.0, 8.0))];
}

uint64_t hottest_of(const std::vector<ObjectWord> &words) {
  uint64_t hottest = 1;
  for (const ObjectWord &word : words)
    hottest = std::max(hottest, word.hotness);
  return hottest;
}

std::string cells_text(std::span<const ObjectWord> words, size_t columns, uint64_t hottest) {
  std::string text;
  for (size_t i = 0; i < words.size(); i++)
    text += std::string(i && i % (columns / 4) == 0 ? " " : "") + height(words[i], hottest);
  return text;
}

// The members that a line of the map shows, the used ones first.
std::string names_text(std::span<const ObjectWord> words) {
  std::string used, last;
  for (const ObjectWord &word : words) {
    if (word.name.empty() || word.name == last || !word.used())
      continue;
    used += (used.empty() ? "" : ", ") + word.name;
    last = word.name;
  }
  return used;
}

std::string padded(const std::string &text, size_t width) {
  size_t has = columns_of(text);
  return text + std::string(width > has ? width - has : 0, ' ');
}

// `lines` of a map, of which those at the end that are all unused are left out.
std::string map_lines(const std::vector<ObjectWord> &words, size_t columns, const Style &style) {
  const uint64_t hottest = hottest_of(words);
  size_t lines = (words.size() + columns - 1) / columns, last_used = 0;
  for (size_t i = 0; i < words.size(); i++)
    if (words[i].used())
      last_used = i / columns;
  const size_t drawn = std::min({lines, last_used + 2, kMaxMapLines});
  std::string text;
  for (size_t line = 0; line < drawn; line++) {
    std::span<const ObjectWord> all(words);
    auto part = all.subspan(line * columns, std::min(columns, words.size() - line * columns));
    std::string drawing = padded(cells_text(part, columns, hottest), columns + 3);
    std::string row = fmt::format("{:>7}  {}  {}", part.front().offset, drawing,
                                  style.faint(printable(names_text(part))));
    row.erase(row.find_last_not_of(' ') + 1);
    text += "  " + row + "\n";
  }
  if (drawn < lines) {
    bool unused = last_used < drawn;
    text += style.faint(fmt::format(
                "           {}{}", base::with_noun(lines - drawn, "more line"),
                !unused ? (lines - drawn == 1 ? "; --json shows it" : "; --json shows them")
                : lines - drawn == 1 ? ", unused"
                                     : ", all of them unused")) +
            "\n";
  }
  return text;
}

class ObjectsText {
public:
  ObjectsText(const ObjectsResult &result, const ObjectsTextOptions &options, const Style &style)
      : result_(result), options_(options), style_(style) {}

  std::string text() {
    header();
    if (options_.sort.empty())
      out_ += findings_text(result_.findings, 5, style_);
    table();
    maps();
    missing();
    return std::move(out_);
  }

private:
  std::string sampling_text() const {
    if (result_.mode & ASSAY_WORDS_COUNTERS)
      return "each access was counted";
    if (result_.mode & ASSAY_WORDS_BITS)
      return "each byte was marked once";
    std::string text = base::format_counted(double(result_.samples), "sample");
    if (result_.time_unit == ASSAY_TIME_MARKS)
      text += ", one for each mark";
    else
      text += ", one each " + base::format_duration_us(double(result_.interval));
    if (result_.samples == 0) // the end of an object, or of the run, takes one
      return text + ": what was used counts once";
    return result_.last_interval > result_.interval && result_.time_unit != ASSAY_TIME_MARKS
               ? text + ", later " + base::format_duration_us(double(result_.last_interval))
               : text;
  }

  void header() {
    out_ +=
        style_.strong("assay objects: " + command_text(result_.process, result_.programs)) + "\n";
    out_ += fmt::format("  {} with {} in {}, of which {} used; {}\n  {} of the bytes "
                        "that came with used words were not used themselves, each line as often as "
                        "it was\n",
                        base::format_counted(double(result_.totals.count), "object"),
                        bytes(result_.totals.bytes),
                        base::format_counted(double(result_.totals.lines), "line"),
                        base::format_counted(double(result_.totals.used_lines), "was", "were"),
                        sampling_text(), base::format_share(result_.wasted_share));
  }

  std::string object_text(const ObjectRow &row) const {
    if (row.kind != "heap")
      return row.kind + " " + row.name;
    const std::string where = analyze::brief_place(row.alloc_stack[row.owner]);
    std::string text = (row.type.empty() ? "" : analyze::short_type(row.type) + " in ") + where;
    if (!row.free_stack.empty())
      text += ", freed in " + analyze::brief_place(row.free_stack.front());
    return text;
  }

  void table() {
    const auto &order = analyze::object_order(options_.sort);
    out_ += "\n" + style_.strong(order.question) + "\n";
    if (result_.nothing_matches()) {
      out_ += fmt::format("  --filter '{}' matches none of {}\n", printable(result_.filter),
                          base::with_noun(result_.filtered_out, "group"));
      return;
    }
    Table table;
    for (const char *name : {"wasted", "objects", "size", "words used", "of lines", "hotness"})
      table.column(name, Align::right);
    table.column("object", Align::left);
    size_t shown = 0, ranked = 0;
    for (const ObjectRow &row : result_.rows) {
      if (order.rank(row) <= 0)
        break;
      ranked++;
      if (shown == options_.top)
        continue;
      shown++;
      const bool varies = row.sums.size_min != row.sums.size_max;
      table.row({base::format_share(
                     result_.total_score ? double(row.score()) / double(result_.total_score) : 0),
                 count(row.sums.count), (varies ? "≤ " : "") + bytes(row.sums.size_max),
                 base::format_share(row.used_share()),
                 row.sums.line_units ? base::format_share(row.line_used_share()) : "-",
                 count(row.sums.hotness), printable(object_text(row))});
    }
    if (ranked)
      out_ += table.text(style_);
    else
      out_ += "  none\n";
    out_ += more_text(ranked - shown, style_);
    if (result_.filtered_out)
      out_ += style_.faint(fmt::format("  --filter left out {}",
                                       base::with_noun(result_.filtered_out, "group"))) +
              "\n";
  }

  void maps() {
    unsigned drawn = 0;
    const auto &order = analyze::object_order(options_.sort);
    for (const ObjectRow &row : result_.rows) {
      if (drawn == options_.maps || order.rank(row) <= 0)
        break;
      if (row.words.empty())
        continue;
      drawn++;
      out_ += "\n" + style_.strong(printable(analyze::object_kind_text(row))) +
              fmt::format(": {} of {}\n", count(row.sums.count), bytes(row.sums.size_max));
      out_ += word_map(row, style_);
    }
    if (drawn)
      out_ += style_.faint("  · unused, ▁ to █ used, each step half as often as the next; at the "
                           "left, the offset in bytes") +
              "\n";
  }

  void missing() {
    std::string text = uncounted_modules_text(result_.modules.measured, result_.modules.all);
    if (std::ranges::any_of(result_.rows, [](const ObjectRow &row) {
          return analyze::is_linked_by_library(row.type);
        }))
      text += "  of nodes of std::map, std::set and std::list the links look unused, because the "
              "library's own code follows them\n";
    for (auto [number, times] : result_.losses)
      text += loss_text(number, times);
    for (const std::string &note : result_.notes)
      text += "  " + printable(note) + "\n";
    if (!text.empty())
      out_ += "\n" + style_.strong("What is missing") + "\n" + text;
  }

  const ObjectsResult &result_;
  const ObjectsTextOptions &options_;
  const Style &style_;
  std::string out_;
};

} // namespace

std::string word_map(const ObjectRow &row, const Style &style) {
  const size_t columns = row.unit_bytes == 1 ? 4 * kColumns : kColumns;
  std::string text;
  // Of records that do not lie alike in each 64 bytes, that would be a mixture.
  constexpr uint64_t kLineBytes = 64;
  const bool is_mixed = row.is_array() && kLineBytes % row.layout->size;
  if (!row.positions.empty() && !is_mixed) {
    text += style.faint(fmt::format("  within each 64 bytes, over the whole object:")) + "\n";
    text += map_lines(row.positions, columns, style);
  }
  if (!row.positions.empty())
    text += style.faint(fmt::format("  from its begin on, {} each:", bytes(row.cell_bytes))) + "\n";
  return text + map_lines(row.words, columns, style);
}

std::string objects_text(const ObjectsResult &result, const ObjectsTextOptions &options,
                         const Style &style) {
  return ObjectsText(result, options, style).text();
}

} // namespace report
