// The entries of a SITES section (abi/sites.h).
#pragma once

#include "abi/sites.h"
#include "abi/tools.h"
#include "base/byte_reader.h"
#include "base/fail.h"
#include "profile/profile.h"

namespace profile {

// What follows the AssaySite of a unit. Throws Failure for an impossible one.
inline Unit read_unit(base::ByteReader &entry) {
  auto raw = entry.read<AssaySiteUnit>();
  if (raw.mode_count > ASSAY_MAX_TOOLS)
    base::fail("a unit of {} modes", raw.mode_count);
  Unit unit{{}, std::vector<uint32_t>(raw.mode_count), raw.tools};
  for (uint32_t &mode : unit.modes)
    mode = entry.read<uint32_t>();
  if (raw.mode_count % 2)
    entry.read<uint32_t>(); // padding
  unit.source = entry.text(raw.source_length);
  return unit;
}

} // namespace profile
