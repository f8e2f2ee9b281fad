#include "profile/values.h"

namespace profile {

uint16_t code_value_file(const std::vector<uint8_t> &build_id, const std::string &path) {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  auto add = [&](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  if (build_id.empty())
    for (char c : path)
      add(static_cast<uint8_t>(c));
  for (uint8_t byte : build_id)
    add(byte);
  const auto number = static_cast<uint16_t>(hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48);
  return number ? number : 1;
}

} // namespace profile
