// The address space of the shadows (abi/shadow.h): those of several tools overlap where no program
// address has its shadow, so each asks here for its span and gets what is not there yet.
#pragma once

#include <stdint.h>

namespace assay {

// Maps [begin, end). False if the kernel refuses a part, or something else lies there.
bool reserve_shadow(uint64_t begin, uint64_t end);

} // namespace assay
