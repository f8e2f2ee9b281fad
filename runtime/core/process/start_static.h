#pragma once

namespace assay {

// The runtime starts, and its tools map their shadows themselves. Absent where functions are not
// wrapped: such an executable has a loader.
__attribute__((weak)) void stop_mapping_early();

} // namespace assay
