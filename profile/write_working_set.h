// The records of a working set, from the model.
#pragma once

#include "profile/container.h"
#include "profile/working_set.h"

namespace profile {

// `context_of` writes the context of an owner where it is new, and gives its number.
void write_working_set(const WorkingSet &set, ContainerWriter &out,
                       const std::function<uint32_t(const LineOwner &)> &context_of);

} // namespace profile
