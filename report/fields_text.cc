// `assay fields` for people: what to change, which structs cost the most, and those drawn byte by
// byte, as pahole does, with what was counted beside each member.

#include "report/fields.h"

#include "abi/fields.h"
#include "abi/records.h"
#include "analyze/fields_names.h"
#include "analyze/type_names.h"
#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::FieldRow;
using analyze::short_field;
using analyze::short_type;
using analyze::StructRow;
using Align = Table::Align;

constexpr uint64_t kLine = 64;
constexpr size_t kMaxMatrix = 24; // fields of a heat map
constexpr size_t kBar = 8;        // columns of the hottest field
constexpr size_t kMaxOrder = 12;  // members of an order
constexpr size_t kPairs = 5;      // of a struct

std::string bar(uint64_t value, uint64_t most) {
  static constexpr const char *kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!value || !most)
    return "";
  auto eighths =
      std::max<uint64_t>(1, static_cast<uint64_t>(double(value) / double(most) * kBar * 8));
  std::string text;
  for (uint64_t i = 0; i < eighths / 8; i++)
    text += "█";
  return text + kEighths[eighths % 8];
}

class FieldsText {
public:
  FieldsText(const analyze::FieldsResult &result, const FieldsTextOptions &options,
             const Style &style)
      : result_(result), options_(options), style_(style) {}

  std::string text() {
    out_ +=
        style_.strong("assay fields: " + command_text(result_.process, result_.programs)) + "\n";
    if (!result_.accesses && !result_.lost) {
      out_ += "  no access to a field was counted";
      if (!result_.losses.count(ASSAY_LOSS_no_maps))
        out_ +=
            ": either the code makes none, or it is compiled without its types (-g0, -g1); then "
            "build it with -g";
      out_ += "\n";
      missing();
      return std::move(out_);
    }
    out_ += fmt::format("  {} to fields of {}; {} of those that the source makes to fields are "
                        "attributed\n",
                        base::format_counted(double(result_.of_structs), "access", "accesses"),
                        base::with_noun(result_.structs.size() + result_.filtered, "struct"),
                        base::format_share(result_.attributed_share));
    if (options_.sort.empty())
      out_ += findings_text(result_.findings, options_.top, style_);
    structs();
    for (size_t i = 0; i < std::min(options_.drawings, result_.structs.size()); i++)
      draw(result_.structs[i]);
    missing();
    return std::move(out_);
  }

private:
  void heading(const std::string &text) { out_ += "\n" + style_.strong(text) + "\n"; }

  void structs() {
    if (!result_.filter.empty() && result_.structs.empty() && result_.filtered) {
      out_ += fmt::format("  --filter '{}' matches none of them\n", printable(result_.filter));
      return;
    }
    heading(analyze::struct_order(options_.sort).question);
    Table table;
    for (const char *name : {"lines wasted", "accesses", "disparity", "used", "bytes"})
      table.column(name, Align::right);
    table.column("struct", Align::left);
    size_t shown = std::min(options_.top, result_.structs.size());
    for (size_t i = 0; i < shown; i++) {
      const StructRow &row = result_.structs[i];
      table.row({base::format_count(row.score), base::format_count(double(row.accesses())),
                 base::format_share(row.disparity), base::format_share(row.used_share),
                 std::to_string(row.record.size), short_type(row.record.name) + " " + row.place()});
    }
    out_ += table.text(style_) + more_text(result_.structs.size() - shown, style_);
    if (result_.filtered)
      out_ += style_.faint(fmt::format("  {} more below the threshold, or not asked for",
                                       result_.filtered)) +
              "\n";
  }

  // Every member at its offset, holes between them, a rule where a line ends.
  void draw(const StructRow &row) {
    heading(fmt::format("{}  {}, {}", printable(short_type(row.record.name)),
                        base::with_noun(row.record.size, "byte"), printable(row.place())));
    Table table;
    for (const char *name : {"offset", "bytes", "reads", "writes"})
      table.column(name, Align::right);
    table.column("heat", Align::left);
    table.column("field", Align::left);
    uint64_t most = 0;
    for (const FieldRow &field : row.fields)
      most = std::max(most, field.accesses());
    auto hole = row.holes.begin();
    uint64_t line = 0;
    auto add_rule = [&](uint64_t offset) {
      if (offset / kLine > line) {
        line = offset / kLine;
        table.row({"", "", "", "", "", fmt::format("──── line {} ────", line)});
      }
    };
    auto add_holes = [&](uint64_t before) {
      for (; hole != row.holes.end() && hole->offset < before; ++hole) {
        add_rule(hole->offset);
        table.row({std::to_string(hole->offset), std::to_string(hole->size), "", "", "", "(hole)"});
      }
    };
    size_t quiet = 0;
    for (const FieldRow &field : row.fields) {
      const profile::Leaf &leaf = row.record.leaves[field.leaf];
      add_holes(leaf.offset_bits / 8);
      add_rule(leaf.offset_bits / 8);
      if (!field.accesses() && row.fields.size() > 40) {
        quiet++;
        continue;
      }
      bool is_bits = leaf.flags & ASSAY_LEAF_BIT_FIELD;
      table.row({is_bits ? fmt::format("{}:{}", leaf.offset_bits / 8, leaf.offset_bits % 8)
                         : std::to_string(leaf.offset_bits / 8),
                 is_bits ? fmt::format(":{}", leaf.size_bits) : std::to_string(leaf.size_bits / 8),
                 base::format_count(double(field.reads)), base::format_count(double(field.writes)),
                 bar(field.accesses(), most),
                 fmt::format("{} : {}{}", row.field_names[field.leaf], short_type(leaf.type),
                             leaf.elements > 1 ? fmt::format(", {} times", leaf.elements) : "")});
    }
    add_holes(~0ULL);
    out_ += table.text(style_);
    if (quiet)
      out_ += style_.faint("  " + base::with_noun(quiet, "field that was not accessed is left out",
                                                  "fields that were not accessed are left out")) +
              "\n";
    if (std::ranges::any_of(row.record.leaves, is_member_of_base))
      out_ += style_.faint("  accesses to members of a base class are counted for that class; here "
                           "are copies of the whole\n");
    affinity(row);
    advice(row);
  }

  static bool is_member_of_base(const profile::Leaf &leaf) {
    return (leaf.flags & (ASSAY_LEAF_BASE | ASSAY_LEAF_HIDDEN)) == ASSAY_LEAF_BASE;
  }

  void affinity(const StructRow &row) {
    if (row.affinity.empty())
      return;
    out_ += fmt::format("  used together ({}):", row.is_sampled
                                                     ? "sampled windows"
                                                     : "in one stretch of code; no usable samples");
    size_t shown = 0;
    for (const analyze::Affinity &pair : row.affinity) {
      if (shown++ == kPairs)
        break;
      out_ +=
          fmt::format("{} {} + {} {}", shown > 1 ? "," : "", printable(row.field_names[pair.a]),
                      printable(row.field_names[pair.b]), base::format_share(pair.together_share));
    }
    out_ += "\n";
    heat_map(row);
  }

  // How often two fields were used together, as shades.
  void heat_map(const StructRow &row) {
    static constexpr const char *kShades[] = {"·", "░", "▒", "▓", "█"};
    std::vector<uint32_t> fields;
    for (const FieldRow &field : row.fields)
      if (field.accesses())
        fields.push_back(field.leaf);
    if (fields.size() < 3 || fields.size() > kMaxMatrix)
      return;
    for (size_t i = 0; i < fields.size(); i++) {
      out_ += "    ";
      for (size_t j = 0; j < i; j++) {
        double share = 0;
        for (const analyze::Affinity &pair : row.affinity)
          if (pair.a == fields[j] && pair.b == fields[i])
            share = pair.together_share;
        out_ += kShades[std::min<size_t>(4, static_cast<size_t>(share * 5))];
      }
      out_ += "  " + printable(row.field_names[fields[i]]) + "\n";
    }
  }

  void advice(const StructRow &row) {
    const analyze::LayoutAdvice &advice = row.advice;
    if (!advice.is_worth_it) {
      out_ +=
          fmt::format("  {:.2f} lines an access; no other order is better{}\n", advice.lines_before,
                      advice.is_sweep  ? ", because objects are walked through in a row"
                      : row.is_sampled ? ""
                                       : ", as far as single stretches of code show");
      return;
    }
    out_ += fmt::format("  {:.2f} lines an access, {:.2f} in the order", advice.lines_before,
                        advice.lines_after);
    const std::vector<size_t> order = row.declared_order();
    for (size_t i = 0; i < std::min(kMaxOrder, order.size()); i++)
      out_ +=
          fmt::format("{} {}", i ? "," : "", printable(short_field(row.members[order[i]].name)));
    out_ += fmt::format("{} ({} -> {} bytes)\n", order.size() > kMaxOrder ? ", …" : "",
                        advice.size_before, advice.size_after);
  }

  void missing() {
    std::string text;
    for (auto [kind, count] : result_.losses)
      text += loss_text(kind, count);
    for (const std::string &note : result_.notes)
      text += "  " + printable(note) + "\n";
    if (!text.empty())
      out_ += "\n" + style_.strong("What is missing?") + "\n" + text;
  }

  const analyze::FieldsResult &result_;
  const FieldsTextOptions &options_;
  const Style &style_;
  std::string out_;
};

} // namespace

std::string fields_text(const analyze::FieldsResult &result, const FieldsTextOptions &options,
                        const Style &style) {
  return FieldsText(result, options, style).text();
}

} // namespace report
