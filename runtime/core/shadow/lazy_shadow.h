// When the kernel refuses a shadow's whole span (ulimit -v, strict overcommit), the tool is off,
// but the program's instrumented code still counts at fixed addresses. Then the shadow is mapped
// piece by piece, as it is touched.
#pragma once

#include <stdint.h>

namespace assay {

// From now on a fault between begin and end maps what lies around it, and the program goes on.
void map_on_touch(uint64_t begin, uint64_t end);

} // namespace assay
