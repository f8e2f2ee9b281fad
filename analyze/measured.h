// What a profile was measured with.
#pragma once

#include "profile/profile.h"

#include <algorithm>
#include <cstdint>

namespace analyze {

namespace tool {
#define ASSAY_TOOL(name, bit, question) constexpr uint64_t name = uint64_t{1} << bit;
#include "abi/tools.def"
} // namespace tool

// Whether a process of the profile was built with this tool. Files without a word on it are the heap's.
inline bool measured(const profile::Profile &profile, uint64_t tool) {
  return std::any_of(profile.processes.begin(), profile.processes.end(), [&](auto &process) {
    return (process.tools ? process.tools : tool::heap) & tool;
  });
}

} // namespace analyze
