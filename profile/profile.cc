#include "profile/profile.h"

#include <algorithm>

namespace profile {

const Module *Profile::program_of(const Process &process) const {
  for (const Mapping &mapping : process.mappings)
    if (const Module &module = modules[mapping.module.v]; module.path == process.executable)
      return &module;
  auto found = std::ranges::find(modules, process.executable, &Module::path);
  return found == modules.end() ? nullptr : &*found;
}

} // namespace profile
