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

// Whether any unit of the module was built for this tool. Where its units are not known, all that was
// instrumented is taken for it.
inline bool measured(const profile::Module &module, uint64_t tool) {
  return module.instrumented &&
         (module.units.empty() ||
          std::any_of(module.units.begin(), module.units.end(), [&](const profile::Unit &unit) {
            return (unit.tools ? unit.tools : tool::heap) & tool;
          }));
}

} // namespace analyze
