// Where objects come from that malloc did not make: numbers for (kind, name), written to the
// profile before the contexts that refer to them.
#pragma once

#include <stdint.h>

#include "abi/records.h"

namespace assay {

// The number of the origin, from 1; the same for the same kind and name. 0 when there are too many.
// Inside a ReentrancyGuard section.
uint32_t origin_number(AssayOriginKind kind, const char *name);

// Writes the origins that the file lacks. Under the lock of flush().
void write_origins();

} // namespace assay
