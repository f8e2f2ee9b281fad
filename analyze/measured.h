// What a profile was measured with.
#pragma once

#include "abi/tools.h"
#include "profile/profile.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace analyze {

// Whether a process of the profile was built with this tool (ASSAY_TOOL_NAME).
inline bool measured(const profile::Profile &profile, uint64_t tool) {
  return std::any_of(profile.processes.begin(), profile.processes.end(),
                     [&](auto &process) { return assay_tools_or_default(process.tools) & tool; });
}

// Whether any unit of the module was built for this tool. Where its units are not known, all that was
// instrumented is taken for it.
inline bool measured(const profile::Module &module, uint64_t tool) {
  return module.instrumented &&
         (module.units.empty() ||
          std::any_of(module.units.begin(), module.units.end(),
                      [&](const profile::Unit &unit) { return unit.tools & tool; }));
}

// What a profile lacks of what a tool measures (ASSAY_TOOL_NAME): kinds of abi/losses.def, with their counts.
std::map<uint32_t, uint64_t> losses_of(const profile::Profile &profile, uint64_t tool);

// Executables and shared objects of a profile, and of these those that were built for a tool.
struct ModuleCounts {
  uint64_t all = 0, measured = 0;
};
inline ModuleCounts count_modules(const profile::Profile &profile, uint64_t tool) {
  ModuleCounts counts;
  for (const profile::Module &module : profile.modules)
    if (module.path.starts_with('/')) {
      counts.all++;
      counts.measured += measured(module, tool);
    }
  return counts;
}

} // namespace analyze
