// What the compiler says of a module's translation units (abi/sites.h).
#pragma once

#include <stdint.h>

namespace assay {

// Adds what the units of a SITES section ask for to runtime.tools_wanted, and tells each tool the modes that it was
// compiled in. False if one of them does not agree with those before.
bool read_units(const void *sites, uint64_t size);

} // namespace assay
