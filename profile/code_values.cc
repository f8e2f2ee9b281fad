#include "profile/code_values.h"

namespace profile {

CodeValues::CodeValues(const std::vector<Module> &modules) {
  for (uint32_t i = 0; i < modules.size(); i++)
    by_number_.emplace(code_value_file(modules[i].build_id, modules[i].path), i);
}

std::vector<uint32_t> CodeValues::modules_of(uint64_t value) const {
  std::vector<uint32_t> found;
  for (auto [each, end] = by_number_.equal_range(static_cast<uint16_t>(value >> 48)); each != end;
       ++each)
    found.push_back(each->second);
  return found;
}

} // namespace profile
