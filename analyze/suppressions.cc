// Reading and matching suppressions.
//
// The idea: the meaning is LeakSanitizer's to the letter, since people have such files; only its
// other kinds of lines (race:, vptr:, …) are refused rather than read, because a leak file with them
// is a mistake more often than not. A pattern without wildcards is a search for text; one with `*`
// is its pieces in order, each as early as it goes, which is enough because the pieces hold no
// wildcard.

#include "analyze/suppressions.h"

#include "base/fail.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace analyze {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  size_t begin = text.find_first_not_of(kBlank), end = text.find_last_not_of(kBlank);
  return begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
}

} // namespace

Suppressions::Suppressions(std::string_view text, const std::string &source) {
  constexpr std::string_view kLeak = "leak:";
  for (size_t number = 1; !text.empty(); number++) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#')
      continue;
    if (!line.starts_with(kLeak) || line.size() == kLeak.size())
      base::fail("{}:{}: '{}' is not a suppression of a leak; write leak:PATTERN, or # before a "
                 "comment",
                 source, number, line.substr(0, 80));
    patterns_.push_back({std::string(line.substr(kLeak.size())), false});
  }
}

bool Suppressions::match(const image::CallStack &frames) {
  for (Pattern &pattern : patterns_)
    for (const image::Frame &frame : frames)
      for (const std::string *name :
           {&frame.function, &frame.linkage_name, &frame.file, &frame.module})
        if (!name->empty() && suppression_matches(pattern.text, *name)) {
          pattern.used = true;
          return true;
        }
  return false;
}

size_t Suppressions::patterns_used() const {
  return static_cast<size_t>(std::count_if(patterns_.begin(), patterns_.end(),
                                           [](const Pattern &pattern) { return pattern.used; }));
}

Suppressions read_suppressions(const std::string &path) {
  std::FILE *file = std::fopen(path.c_str(), "re");
  std::string text;
  char part[4096];
  for (size_t got; file && (got = std::fread(part, 1, sizeof(part), file)) > 0;)
    text.append(part, got);
  int error = !file || std::ferror(file) ? errno : 0;
  if (file)
    std::fclose(file);
  if (error)
    base::fail("{}: these suppressions cannot be read: {}; check the name", path,
               std::strerror(error));
  return {text, path};
}

bool suppression_matches(std::string_view pattern, std::string_view name) {
  bool at_begin = pattern.starts_with('^'), at_end = pattern.ends_with('$');
  if (at_begin)
    pattern.remove_prefix(1);
  if (at_end && !pattern.empty())
    pattern.remove_suffix(1);
  size_t at = 0;
  bool bound = at_begin; // the next piece must be right here
  while (true) {
    size_t star = pattern.find('*');
    std::string_view piece = pattern.substr(0, star);
    if (star == std::string_view::npos) { // the last one
      if (at_end)
        return name.size() >= at + piece.size() && name.ends_with(piece) &&
               (!bound || name.size() == at + piece.size());
      return bound ? name.substr(at).starts_with(piece)
                   : name.find(piece, at) != std::string_view::npos;
    }
    size_t found = bound ? (name.substr(at).starts_with(piece) ? at : std::string_view::npos)
                         : name.find(piece, at);
    if (found == std::string_view::npos)
      return false;
    at = found + piece.size();
    bound = false;
    pattern.remove_prefix(star + 1);
  }
}

} // namespace analyze
