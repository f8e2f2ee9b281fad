// When the kernel refuses a shadow's whole span (ulimit -v, strict overcommit), the tool is off,
// but the program's instrumented code still counts at fixed addresses. Then the shadow is mapped
// piece by piece, as it is touched: by the handler of SIGSEGV, which stays ours (fatal_signals.h).
#pragma once

#include <stdint.h>

namespace assay {

// From now on a fault between begin and end maps what lies around it, and the program goes on.
// Before the handler is set.
void map_on_touch(uint64_t begin, uint64_t end);

// Is there such a span?
bool is_shadow_lazy();

// A fault came at this address. True if it lies in such a span and is mapped now.
bool map_touched(uint64_t address);

} // namespace assay
