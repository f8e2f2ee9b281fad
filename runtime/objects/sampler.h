// When a sample ends, and what happens then.
#pragma once

#include <stdint.h>

#include "abi/lines.h"

namespace assay::objects {

// Reads the options time and interval. A clock that samples cannot have is said, and the wall clock taken.
void start_sampler();
AssayTimeUnit sample_unit();
uint64_t first_sample_interval();
uint64_t sample_interval(); // by now
uint64_t samples_taken();

// On the helper thread. Returns the microseconds until it wants to be asked again.
uint64_t poll_sampler();
void sample_at_mark();
void reset_sampler_in_child(); // of a fork

} // namespace assay::objects
