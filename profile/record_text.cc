// Printing what abi/records.def lists.
//
// The idea: the list is expanded three times, once for each output (values of one record, table of
// fields, offsets), and types choose the formatting by overload; a new record needs no change here
// unless it brings a new type. Fields of a heap info block that are at their empty value are left
// out: most of them are, and the line is read by people.

#include "profile/record_text.h"

#include "base/units.h"
#include "profile/sites.h"

#include <fmt/ranges.h>

#include <cctype>
#include <cstddef>

namespace profile {
namespace {

std::string value_text(uint32_t value) {
  return fmt::format("{}", value);
}
std::string value_text(uint64_t value) {
  return fmt::format("{}", value);
}

std::string value_text(const AssayHib &hib) {
  AssayHib empty;
  assay_hib_clear(&empty);
  std::string text = "{";
#define ASSAY_HIB(type, name, merge, unit)                                                         \
  if (hib.name != empty.name)                                                                      \
    text += fmt::format("{}" #name "={}", text.size() > 1 ? " " : "", hib.name);
#include "abi/hib.def"
  return text + "}";
}

std::string value_text(const AssayObjectSums &sums) {
  std::string text = "{";
#define ASSAY_OBJECT_SUM(name, merge, meaning)                                                     \
  if (sums.name)                                                                                   \
    text += fmt::format("{}" #name "={}", text.size() > 1 ? " " : "", sums.name);
#include "abi/object_sums.def"
  return text + "}";
}

std::string histogram_text(const uint64_t *buckets) {
  std::string text;
  for (int bucket = 0; bucket < ASSAY_HISTOGRAM_BUCKETS; bucket++)
    if (buckets[bucket])
      text += fmt::format("{}2^{}:{}", text.empty() ? "" : " ", bucket, buckets[bucket]);
  return text;
}

std::string value_text(const AssayHibHistograms &histograms) {
  return fmt::format("{{size=[{}] lifetime_us=[{}]}}", histogram_text(histograms.size),
                     histogram_text(histograms.lifetime_us));
}

// How a tail is printed, by the element that records.def names.
struct Tail {
  struct bytes {};
  struct strings {};
};

std::string unit_text(base::ByteReader &entry) {
  Unit unit = read_unit(entry);
  return fmt::format("unit \"{}\" tools {:#x} modes {}", escaped(unit.source), unit.tools,
                     fmt::join(unit.modes, " "));
}

std::string sites_text(std::span<const std::byte> tail) {
  std::string text;
  base::ByteReader reader(tail, "sites");
  while (!reader.at_end()) {
    auto site = reader.read<AssaySite>();
    if (site.size < sizeof(site))
      base::fail("a site of {}", base::with_noun(site.size, "byte"));
    auto body = reader.bytes(site.size - sizeof(site));
    text += text.empty() ? "" : ", ";
    base::ByteReader entry(body, "site");
    if (site.kind == ASSAY_SITE_UNIT) {
      text += unit_text(entry);
      continue;
    }
    if (site.kind != ASSAY_SITE_TYPE && site.kind != ASSAY_SITE_OLD_UNIT) {
      text += fmt::format("kind {} ({} bytes)", site.kind, site.size);
      continue;
    }
    auto type = entry.read<AssaySiteType>();
    std::string name = escaped(entry.text(type.name_length));
    text += site.kind == ASSAY_SITE_OLD_UNIT
                ? fmt::format("unit \"{}\" counters {}", name, type.size)
                : fmt::format("type {:#x} \"{}\" size {}", type.hash, name, type.size);
  }
  return "[" + text + "]";
}

std::string tail_text(Tail::bytes, const RecordView &record, bool) {
  if (record.kind == ASSAY_RECORD_Sites)
    return sites_text(record.tail);
  base::ByteReader reader(record.tail);
  return "\"" + escaped(reader.text(reader.left())) + "\"";
}

std::string tail_text(Tail::strings, const RecordView &record, bool) {
  std::string text;
  base::ByteReader reader(record.tail, "strings");
  while (!reader.at_end())
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", escaped(reader.zero_terminated()));
  return "[" + text + "]";
}

std::string tail_text(uint64_t, const RecordView &record, bool with_stacks) {
  if (!with_stacks)
    return fmt::format("({})", record.tail.size() / 8);
  std::string text;
  base::ByteReader reader(record.tail);
  while (!reader.at_end()) {
    auto frame = reader.read<uint64_t>();
    text += fmt::format("\n    module {} + {:#x}", frame >> ASSAY_FRAME_MODULE_SHIFT,
                        frame & ((1ULL << ASSAY_FRAME_MODULE_SHIFT) - 1));
  }
  return text;
}

std::string tail_text(const AssayBlockCounts &, const RecordView &record, bool) {
  std::string text;
  base::ByteReader reader(record.tail);
  while (!reader.at_end()) {
    auto block = reader.read<AssayBlockCounts>();
    text += fmt::format("{}{:#x} reads {} writes {}", text.empty() ? "" : ", ", block.offset,
                        block.reads, block.writes);
  }
  return "[" + text + "]";
}

std::string tail_text(const AssayHotEntry &, const RecordView &record, bool) {
  std::string text;
  base::ByteReader reader(record.tail);
  while (!reader.at_end()) {
    auto entry = reader.read<AssayHotEntry>();
    text += fmt::format("{}{:#x}: {}{}", text.empty() ? "" : ", ", entry.value, entry.count,
                        entry.error ? fmt::format(" error {}", entry.error) : "");
  }
  return "[" + text + "]";
}

std::string tail_text(const AssayWordCell &, const RecordView &record, bool) {
  std::string text;
  base::ByteReader reader(record.tail);
  for (size_t i = 0; !reader.at_end(); i++) {
    auto cell = reader.read<AssayWordCell>();
    if (cell.accessed)
      text +=
          fmt::format("{}{}: {} of {}", text.empty() ? "" : ", ", i, cell.hotness, cell.accessed) +
          (cell.again ? fmt::format(" again {}", cell.again) : "");
  }
  return "[" + text + "]";
}

std::string tail_text(const AssayWordRun &, const RecordView &record, bool) {
  std::string text;
  base::ByteReader reader(record.tail);
  while (!reader.at_end()) {
    auto run = reader.read<AssayWordRun>();
    text += fmt::format("{}{:#x}: {} of {}", text.empty() ? "" : ", ", run.offset, run.hotness,
                        run.units);
  }
  return "[" + text + "]";
}

// Out of line, as what follows, because there is one for each field of each record.
void put(std::string &text, std::string_view name, const std::string &value) {
  text += name;
  text += value;
}

void put_row(std::string &text, std::initializer_list<std::string_view> cells) {
  for (std::string_view cell : cells)
    put(text, "| ", std::string(cell) + " ");
  text += "|\n";
}
void put_row(std::string &text, size_t number, std::initializer_list<std::string_view> cells) {
  put(text, "| ", std::to_string(number) + " ");
  put_row(text, cells);
}

std::string known_record_text(const RecordView &record, [[maybe_unused]] bool with_stacks) {
  using bytes = Tail::bytes;
  using strings = Tail::strings;
  switch (record.kind) {
#define ASSAY_RECORD(Name, number, meaning)                                                        \
  case number: {                                                                                   \
    auto fixed = fixed_part<Assay##Name>(record);                                                  \
    std::string text = #Name;
#define ASSAY_FIELD(type, name, meaning)                                                           \
  if (std::string_view(#name) != "reserved")                                                       \
    put(text, " " #name "=", value_text(fixed.name));
#define ASSAY_TAIL(element, name, meaning)                                                         \
  put(text, " " #name "=", tail_text(element(), record, with_stacks));
#define ASSAY_END(Name)                                                                            \
  return text;                                                                                     \
  }
#include "abi/records.def"
  default:
    return fmt::format("(unknown kind {}) {}", record.kind, base::with_noun(record.size(), "byte"));
  }
}

void put_heading(std::string &text, unsigned number, const char *name, const char *meaning) {
  text += fmt::format("### {} {}\n\n{}.\n\n", number, name, meaning);
}
void put_rule(std::string &text, int columns) {
  while (columns-- > 0)
    text += "|---";
  text += "|\n";
}
void put_size(std::string &text, size_t bytes) {
  text += fmt::format("\nFixed part: {} bytes.\n\n", bytes);
}

} // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (unsigned char c : text)
    if (c == '\\' || c == '"')
      result += {'\\', static_cast<char>(c)};
    else if (c >= 0x20 && c < 0x7f)
      result += static_cast<char>(c);
    else
      result += fmt::format("\\x{:02x}", c);
  return result;
}

std::string record_text(const RecordView &record, bool with_stacks) {
  try {
    return fmt::format("@{} {}", record.offset, known_record_text(record, with_stacks));
  } catch (const base::Failure &failure) {
    return fmt::format("@{} (kind {}, impossible contents: {})", record.offset, record.kind,
                       failure.what());
  }
}

std::string header_text(const AssayFileHeader &header) {
  return fmt::format("@0 FileHeader version={} header_size={} kind={} pid={} start_unix_ns={}",
                     header.version, header.header_size, header.kind, header.pid,
                     header.start_unix_ns);
}

const char *const kFormatTablesBegin = "<!-- begin: printed by `assay dump --format-table` -->";
const char *const kFormatTablesEnd = "<!-- end -->";

std::string format_tables() {
  std::string text;
#define ASSAY_RECORD(Name, number, meaning)                                                        \
  {                                                                                                \
    using Record [[maybe_unused]] = Assay##Name;                                                   \
    put_heading(text, number, #Name, meaning);                                                     \
    put_row(text, {"offset", "type", "name", "meaning"});                                          \
    put_rule(text, 4);
#define ASSAY_FIELD(type, name, meaning)                                                           \
  put_row(text, offsetof(Record, name), {#type, "`" #name "`", meaning});
#define ASSAY_TAIL(element, name, meaning)                                                         \
  put_row(text, {"`fixed_size`", #element "…", "`" #name "`", meaning});
#define ASSAY_END(Name)                                                                            \
  put_size(text, sizeof(Assay##Name));                                                             \
  }
#include "abi/records.def"
  text += fmt::format("### AssayHib: the heap info block\n\n{} bytes. Merge: how two blocks of one "
                      "context become one.\n\n| offset | type | name | merge | unit |\n"
                      "|---|---|---|---|---|\n",
                      sizeof(AssayHib));
#define ASSAY_HIB(type, name, merge, unit)                                                         \
  put_row(text, offsetof(AssayHib, name), {#type, "`" #name "`", #merge, unit});
#include "abi/hib.def"
  text += fmt::format(
      "\n### AssayObjectSums: what objects of a group have used\n\n{} bytes. Merge: how the "
      "sums of two sets of objects become one.\n\n| offset | name | merge | meaning "
      "|\n|---|---|---|---|\n",
      sizeof(AssayObjectSums));
#define ASSAY_OBJECT_SUM(name, merge, meaning)                                                     \
  put_row(text, offsetof(AssayObjectSums, name), {"`" #name "`", #merge, meaning});
#include "abi/object_sums.def"
  text += "\n### Losses\n\n| kind | name | unit | what happened | what to do "
          "|\n|---|---|---|---|---|\n";
#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  put_row(text, number, {"`" #name "`", unit, what, remedy});
#include "abi/losses.def"
  return text;
}

} // namespace profile
