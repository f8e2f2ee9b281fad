// The counters of the program's translation units: where they are, and what of them has been written.
#pragma once

#include "runtime/core/file/profile_file.h"
#include "runtime/core/tool_callbacks.h"
#include "runtime/fields/descriptors.h"

namespace assay::fields {

// Finds the units of a module and gives each its counters in the blocks.
void add_units(const ModuleSites &sites);
// The module may be unmapped at any time from now on: what of its memory is written later is forgotten.
void end_units(const ModuleSites &sites);
// A module is gone: what was counted in it is written, its counters are given to modules to come.
void remove_units(ModuleId module);

// The entry of the unit of that number (AssayFieldsUnit), and where its stretches are described.
// Null if it is not known.
const uint32_t *find_unit(uint32_t number, UnitEntry &entry);

// Writes what was counted since the last time.
void write_counts();
// Leaves out what was counted so far.
void drop_counts();

// Bytes of a block that hold counters.
uint64_t used_bytes();
void reset_units_in_child();

// A unit that is still there: writes everything it counted since the last reset. Under the lock of flush().
bool is_known_unit(ModuleId module, uint32_t site);
void write_all_counts(ProfileFile &to);

} // namespace assay::fields
