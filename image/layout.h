// How structs lie in memory, from DWARF.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace image {

struct Member {
  std::string name; // empty for a base class or an anonymous member, whose own members follow
  std::string type;
  uint64_t offset = 0, size = 0;
  bool operator==(const Member &) const = default;
};

struct StructLayout {
  std::string name; // with its namespaces
  uint64_t size = 0;
  std::string file;
  uint32_t line = 0;
  std::vector<Member> members; // by offset; bit fields share offsets

  // An array without a size at the end, which takes what is left of the object; null: it has none.
  const Member *flexible_array() const;

  // Whether it has the same members in the same places, wherever it is defined.
  bool lies_like(const StructLayout &other) const;

  // Bytes of the struct that belong to no member, padding at the end included.
  uint64_t hole_bytes() const;
};

// The definitions of the structs, classes and unions called `names` in the file, by name: several
// of one name where their members differ, none where there is none. No file, no debug info: an
// empty answer. Walks all debug info once, so ask for everything at once.
std::multimap<std::string, StructLayout> struct_layouts(const std::string &path,
                                                        const std::set<std::string> &names);

} // namespace image
