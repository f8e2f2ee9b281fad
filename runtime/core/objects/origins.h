// Where objects come from that malloc did not make: numbers for (kind, name), written to the
// profile before the contexts that refer to them.
#pragma once

#include <stdint.h>

#include "abi/records.h"
#include "runtime/core/ids.h"

namespace assay {

// The origin; the same for the same kind and name. kNoOrigin when there are too many.
// Inside a ReentrancyGuard section.
OriginId origin_number(AssayOriginKind kind, const char *name);

// Writes the origins that the file lacks. Under the lock of flush().
void write_origins();

} // namespace assay
