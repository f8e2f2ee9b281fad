// What data of every tool refers to: modules, types and stacks of the profile, by index; and what made an object.
#pragma once

#include "base/strong_id.h"

#include <compare>
#include <cstdint>
#include <string>

namespace profile {

using ModuleId = base::Id<struct ModuleTag>; // index into Profile::modules
using TypeId = base::Id<struct TypeTag>;     // index into Profile::types
using StackId = base::Id<struct StackTag>;   // index into Profile::stacks

// What made an object: a function of the malloc family, or something else with a name of its own.
struct Origin {
  uint32_t kind = 0; // AssayOriginKind; 0: malloc
  std::string name;  // of a pool
  friend auto operator<=>(const Origin &, const Origin &) = default;
};

// A place in code that means the same in every run: an address in the ELF image of a module. Where
// the module is not known, offset is the address itself. Call stacks hold return addresses: the
// call is the instruction before.
struct CodeLocation {
  ModuleId module;
  uint64_t offset = 0;
  friend auto operator<=>(const CodeLocation &, const CodeLocation &) = default;
};

} // namespace profile
