// Names that begin with `__`, or `_` and a capital, are the C++ library's and the compiler's alone.

#include "analyze/fields_names.h"

#include "analyze/type_names.h"

#include <cctype>
#include <map>

namespace analyze {
namespace {

bool is_reserved(std::string_view name) {
  return name.size() > 1 && name[0] == '_' &&
         (name[1] == '_' || std::isupper(static_cast<unsigned char>(name[1])));
}

// A part of a path: `Base::member`.
struct Part {
  std::string scope; // the innermost, with its `::`; may be empty
  std::string name;
};

std::vector<Part> parts_of(std::string_view path) {
  std::vector<Part> parts(1);
  int depth = 0;
  for (const char c : short_type(path)) {
    depth += brackets_opened(c);
    Part &part = parts.back();
    if (depth == 0 && c == '.') {
      parts.emplace_back();
      continue;
    }
    part.name += c;
    if (depth == 0 && part.name.ends_with("::")) {
      part.scope = part.name;
      part.name.clear();
    }
  }
  return parts;
}

std::string whole(const std::vector<Part> &parts) {
  std::string text;
  for (const Part &part : parts)
    text += (&part == &parts.front() ? "" : ".") + part.scope + part.name;
  return text;
}

// From the one that tells a field least to the whole.
struct Names {
  std::string member, last, whole;
};

Names names_of(const std::string &path) {
  const std::vector<Part> parts = parts_of(path);
  Names names;
  names.whole = whole(parts);
  if (is_reserved(parts.front().name)) { // the record itself is the library's
    names.member = names.last = names.whole;
    return names;
  }
  for (const Part &part : parts) {
    if (is_reserved(part.name))
      continue;
    names.member += names.member.empty() ? "" : ".";
    names.member += (is_reserved(part.scope) ? "" : part.scope) + part.name;
  }
  names.last = names.member;
  if (is_reserved(parts.back().name))
    names.last += "." + parts.back().name;
  return names;
}

} // namespace

std::string short_field(std::string_view path) {
  return whole(parts_of(path));
}

std::vector<std::string> short_fields(const profile::Record &record) {
  std::vector<Names> names;
  std::map<std::string, unsigned> as_member, as_last;
  for (const profile::Leaf &leaf : record.leaves) {
    const Names &of = names.emplace_back(names_of(leaf.name));
    as_member[of.member]++;
    as_last[of.last]++;
  }
  std::vector<std::string> chosen;
  for (const Names &of : names)
    chosen.push_back(as_member[of.member] == 1 ? of.member
                     : as_last[of.last] == 1   ? of.last
                                               : of.whole);
  return chosen;
}

} // namespace analyze
