// Where in memory objects are: what a sample looks at. 4 MiB of program a region; one that ever held an object stays.
#pragma once

#include <stdint.h>

namespace assay::objects {

bool create_regions();
void note_region(uint64_t begin, uint64_t end); // an object lies there; cheap where it is known
// Calls f(begin, end) for runs of regions.
void for_each_region(void (*f)(uint64_t begin, uint64_t end));

} // namespace assay::objects
