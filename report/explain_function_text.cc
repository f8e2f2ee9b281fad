// `assay explain` for people, of one function: its instructions, with what is known beside them.
//
// Nothing that is known of an instruction is cut to fit: what is too long goes on in the next line, in
// its own column.

#include "report/explain.h"

#include "base/units.h"
#include "report/explain_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::ExplainedAccess;
using analyze::ExplainedFunction;
using analyze::ExplainedLine;
using analyze::ExplainedLoop;

using Align = Table::Align;

// Words in lines of at most `width` columns, those after the first moved in by two; a word that is
// longer has a line of its own.
std::vector<std::string> wrapped(const std::string &text, unsigned width) {
  std::vector<std::string> lines(1);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    std::string &line = lines.back();
    bool begins = line.find_first_not_of(' ') == std::string::npos;
    if (!begins && columns_of(line) + 1 + columns_of(word) > width)
      lines.push_back("  " + word);
    else
      line += (begins ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

std::string padded(const std::string &text, unsigned width) {
  unsigned columns = columns_of(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

std::string not_understood_text(const ExplainedFunction &function) {
  std::string text = fmt::format("{} at {}", function.why_not, address_text(function.where));
  if (!function.why_not_meaning.empty())
    text += fmt::format(": {}", function.why_not_meaning);
  return printable(text);
}

class FunctionText {
public:
  FunctionText(const ExplainedFunction &function, const Style &style)
      : function_(function), style_(style) {}

  std::string text(const std::string &path) {
    header(path);
    if (!function_.lines.empty()) {
      measure();
      instructions();
    }
    definitions();
    return std::move(out_);
  }

private:
  // What stands beside an instruction: an access with the form of its address, or a condition.
  struct Note {
    std::string access;
    std::string what;
    bool known = true;
  };

  static constexpr unsigned kGap = 2, kIndent = 2, kDeepest = 12, kMinForm = 30, kMinCode = 24;

  void header(const std::string &path) {
    out_ += style_.strong(path.empty()
                              ? printable(function_.name)
                              : printable("assay explain: " + function_.name + " in " + path)) +
            "\n";
    if (!function_.linkage_name.empty() && function_.linkage_name != function_.name)
      out_ += "  linkage name " + printable(function_.linkage_name) + "\n";
    out_ += fmt::format("  at {}, {} of code, {}{}\n", address_text(function_.address),
                        base::with_noun(function_.bytes, "byte"),
                        base::format_counted(double(function_.lines.size()), "instruction"),
                        function_.understood ? ", understood" : "");
    if (!function_.understood) {
      out_ += "  not understood: " + not_understood_text(function_) + "\n";
      return;
    }
    if (!function_.immovable.name.empty())
      out_ += fmt::format("  cannot be moved: {}\n", function_.immovable.meaning);
    const analyze::ExplainedFigures &figures = function_.figures;
    std::string accesses =
        base::format_counted(double(figures.accesses), "memory access", "memory accesses");
    if (figures.accesses)
      accesses += fmt::format(", {} affine ({})", base::format_count(double(figures.affine)),
                              share_text(figures.affine, figures.accesses));
    out_ += fmt::format("  {}; {}; {} to log\n",
                        base::format_counted(double(function_.loops.size()), "loop"), accesses,
                        base::format_counted(double(figures.definitions), "definition"));
  }

  std::string code_text(const ExplainedLine &line) const {
    return std::string(size_t{kIndent} * std::min(line.depth, kDeepest), ' ') +
           printable(line.text);
  }

  std::vector<Note> notes_of(const ExplainedLine &line) const {
    std::vector<Note> notes;
    for (uint32_t index : line.accesses) {
      if (index >= function_.accesses.size())
        continue;
      const ExplainedAccess &access = function_.accesses[index];
      Note note;
      note.access = fmt::format("{} {} B", access.write ? "write" : "read",
                                access.size ? std::to_string(access.size) : "?");
      note.known = !access.form.empty();
      note.what = !note.known     ? "unknown"
                  : access.affine ? printable(access.form)
                                  : printable(access.form) + " (not affine)";
      if (!access.object.empty())
        note.what += " [" + printable(access.object) + "]";
      if (access.masked)
        note.what += " (if the mask says so)";
      notes.push_back(std::move(note));
    }
    if (line.is_branch)
      notes.push_back({"", "? " + (line.condition.empty() ? "unknown" : printable(line.condition)),
                       !line.condition.empty()});
    if (!line.callee.empty() || line.tail_call)
      notes.push_back({"", (line.tail_call ? "tail call of " : "calls ") +
                               (line.callee.empty() ? "what is read" : printable(line.callee))});
    if (!line.mentions.empty())
      notes.push_back({"", printable(line.mentions)});
    if (line.opaque)
      notes.push_back({"", "opaque"});
    return notes;
  }

  // Code that is wider than its column stands alone in a line and makes the column no wider.
  void measure() {
    access_width_ = columns_of("access");
    for (const ExplainedLine &line : function_.lines) {
      address_width_ = std::max(address_width_, columns_of(address_text(line.pc)) + 1);
      for (const Note &note : notes_of(line))
        access_width_ = std::max(access_width_, columns_of(note.access));
    }
    unsigned fixed = kGap + address_width_ + kGap + kGap + access_width_ + kGap;
    unsigned left = style_.width > fixed + kMinForm ? style_.width - fixed - kMinForm : 0;
    code_width_ = kMinCode;
    for (const ExplainedLine &line : function_.lines)
      if (unsigned width = columns_of(code_text(line));
          width <= left && (line.is_branch || !line.accesses.empty()))
        code_width_ = std::max(code_width_, width);
    unsigned used = fixed + code_width_;
    form_width_ = style_.width > used + kMinForm ? style_.width - used : kMinForm;
  }

  // One line; `access` and `form` may be empty.
  void put(const std::string &address, const std::string &code, const std::string &access = "",
           const std::string &form = "", bool faint = false) {
    std::string left =
        std::string(kGap, ' ') + padded(address, address_width_) + std::string(kGap, ' ') + code;
    if (!access.empty() || !form.empty()) {
      left = padded(left, kGap + address_width_ + kGap + code_width_) + std::string(kGap, ' ') +
             padded(access, access_width_) + std::string(kGap, ' ');
      left += faint ? style_.faint(form) : form;
    }
    left.erase(left.find_last_not_of(' ') + 1);
    out_ += left + "\n";
  }

  // "stencil.c:12", where the compiler has said so.
  static std::string source_of(const ExplainedLine &line) {
    if (line.file.empty() || !line.source_line)
      return "";
    return printable(line.file.substr(line.file.rfind('/') + 1)) + ":" +
           std::to_string(line.source_line);
  }

  void loop_line(uint32_t index) {
    const ExplainedLoop &loop = function_.loops[index];
    std::string text =
        std::string(size_t{kIndent} * std::min(loop.depth ? loop.depth - 1 : 0, kDeepest), ' ') +
        style_.strong("loop " + printable(loop.counter)) + " = 0, 1, 2, …";
    if (loop.parent < function_.loops.size())
      text += " in " + printable(function_.loops[loop.parent].counter);
    put("", text);
    std::string indent(size_t{kIndent} * std::min(loop.depth ? loop.depth - 1 : 0, kDeepest), ' ');
    unsigned used = kGap + address_width_ + kGap + columns_of(indent);
    unsigned width = style_.width > used + kMinForm ? style_.width - used : kMinForm;
    if (!loop.sentence.empty())
      for (const std::string &part : wrapped(printable(loop.sentence), width))
        put("", indent + style_.faint(part));
  }

  void instructions() {
    out_ += "\n";
    std::string heading = padded(std::string(kGap, ' ') + "address", kGap + address_width_ + kGap) +
                          padded("instruction", code_width_) + std::string(kGap, ' ') +
                          padded("access", access_width_) + std::string(kGap, ' ') +
                          "its address; ? taken if";
    out_ += style_.faint(heading) + "\n";
    // By address from where it is entered. What lies before that comes last: usually code that is
    // seldom reached, moved away by the compiler.
    const auto entry = std::lower_bound(
        function_.lines.begin(), function_.lines.end(), function_.address,
        [](const ExplainedLine &line, uint64_t address) { return line.pc < address; });
    std::string place;
    for (auto line = entry; line != function_.lines.end(); ++line)
      instruction(*line, place);
    if (entry != function_.lines.begin()) {
      constexpr uint64_t kPadding = 64;
      const bool is_beside = std::prev(entry)->pc + kPadding >= function_.address;
      put("", style_.faint(is_beside ? "before the entry" : "the part that lies elsewhere"));
      place.clear();
    }
    for (auto line = function_.lines.begin(); line != entry; ++line)
      instruction(*line, place);
  }

  // `place` is the line of the source that was named last.
  void instruction(const ExplainedLine &line, std::string &place) {
    if (line.loop < function_.loops.size())
      loop_line(line.loop);
    if (std::string at = source_of(line); at != place && !at.empty()) {
      put("", style_.faint(at));
      place = at;
    }
    std::string address = address_text(line.pc) + (line.block_begins ? ":" : "");
    std::string code = code_text(line);
    std::vector<Note> notes = notes_of(line);
    if (notes.empty() || columns_of(code) > code_width_) {
      put(address, code);
      address.clear();
      code.clear();
    }
    for (const Note &note : notes) {
      std::string access = note.access;
      for (const std::string &part : wrapped(note.what, form_width_)) {
        put(address, code, access, part, !note.known);
        address.clear();
        code.clear();
        access.clear();
      }
    }
  }

  void definitions() {
    if (function_.definitions.empty())
      return;
    out_ += "\n" + style_.strong("Which definitions are the addresses made of?") + "\n";
    Table table;
    table.column("name", Align::left);
    table.column("made at", Align::right);
    table.column("what it is", Align::left);
    for (const analyze::ExplainedDefinition &definition : function_.definitions)
      table.row({definition.name, address_text(definition.pc), definition.what});
    out_ += table.text(style_);
  }

  const ExplainedFunction &function_;
  const Style &style_;
  unsigned address_width_ = 8, code_width_ = 0, access_width_ = 0, form_width_ = 0;
  std::string out_;
};

} // namespace

std::string explained_function_text(const ExplainedFunction &function, const std::string &path,
                                    const Style &style) {
  return FunctionText(function, style).text(path);
}

} // namespace report
