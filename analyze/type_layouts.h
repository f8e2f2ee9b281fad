// How the types of objects lie in memory, by name; several of one name where sources differ.
#pragma once

#include "image/layout.h"
#include "profile/profile.h"

#include <map>
#include <set>
#include <string>

namespace analyze {

class TypeLayouts {
public:
  // Adds the definitions in a module of types of these names. Nothing where its file is not there.
  void add(const profile::Module &module, const std::set<std::string> &names);

  // The one of this name, or nullptr if there is none, or several.
  const image::StructLayout *only(const std::string &name) const;

  // The one that objects of these sizes are, or arrays of it: of several the only one whose size
  // fits, or the only such one of this source file. nullptr if that leaves none, or several.
  const image::StructLayout *of_objects(const std::string &name, uint64_t min_size,
                                        uint64_t max_size, const std::string &file) const;

private:
  std::multimap<std::string, image::StructLayout> all_;
};

} // namespace analyze
