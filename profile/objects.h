// What was measured of the words of objects: summed over objects of one context, size and place of
// the free; and of globals.
#pragma once

#include "abi/lines.h"
#include "abi/object_sums.h"
#include "abi/sites.h"
#include "profile/ids.h"

#include <compare>
#include <cstdint>
#include <tuple>
#include <vector>

namespace profile {

// How one process was sampled.
struct ObjectSampling {
  uint32_t mode = 0;          // a sum of AssayWords (abi/sites.h)
  uint32_t unit = 0;          // AssayTimeUnit
  uint64_t interval = 0;      // at first, in the unit
  uint64_t last_interval = 0; // in the end
  uint64_t samples = 0;
  uint64_t time_us = 0; // of the last walk
  friend auto operator<=>(const ObjectSampling &, const ObjectSampling &) = default;
};

// Objects that fold into one pattern. A unit is a word of 4 bytes, or a byte.
struct ObjectGroup {
  uint32_t kind = 0;     // AssayObjectKind
  uint32_t encoding = 0; // of AssayWords: what a unit is, and what hotness counts
  StackId stack;         // of the allocation; of a local variable, that of its function
  TypeId type;           // none if unknown; of a local variable, its name
  Origin origin;
  StackId free_stack; // none if it is not known
  uint64_t class_bytes = 0;
  uint32_t cell_units = 1; // that one cell stands for
  AssayObjectSums sums = {};
  std::vector<AssayWordCell> positions; // in a line's length, if cell_units is more than 1
  std::vector<AssayWordCell> cells;     // from the object's begin on

  auto key() const {
    return std::tie(kind, encoding, stack, type, origin, free_stack, class_bytes, cell_units);
  }
  // Adds what another one of the same key has.
  void add(const ObjectGroup &other);
  uint64_t unit_bytes() const;
  friend bool operator==(const ObjectGroup &, const ObjectGroup &);
};

// Words of a module's globals with an access.
struct ObjectGlobals {
  ModuleId module;
  uint32_t encoding = 0;
  std::vector<AssayWordRun> runs; // apart, in ascending order
  friend bool operator==(const ObjectGlobals &, const ObjectGlobals &);
};

// Bytes of a unit: 4, or 1.
uint64_t object_unit_bytes(uint32_t encoding);

// Runs in any order, which may overlap, become what they add up to.
void add_up(std::vector<AssayWordRun> &runs, uint64_t unit_bytes);

} // namespace profile
