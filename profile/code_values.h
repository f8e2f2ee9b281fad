// Values that are places in code (values.h), and the files that they are in.
#pragma once

#include "profile/profile.h"

#include <map>

namespace profile {

// The modules of a profile, by index, that a value may be in: several where their files share a number.
class CodeValues {
public:
  explicit CodeValues(const std::vector<Module> &modules);
  std::vector<uint32_t> modules_of(uint64_t value) const;
  static uint64_t offset_of(uint64_t value) { return value & 0xffff'ffff'ffff; }

private:
  std::multimap<uint16_t, uint32_t> by_number_;
};

} // namespace profile
