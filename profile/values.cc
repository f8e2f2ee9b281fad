#include "profile/values.h"

#include "base/stable_hash.h"

namespace profile {

uint64_t file_hash(const std::vector<uint8_t> &build_id, const std::string &path) {
  base::StableHash hash;
  if (build_id.empty())
    hash.add_text(path);
  hash.add_bytes(build_id);
  return hash.value();
}

uint16_t code_value_file(const std::vector<uint8_t> &build_id, const std::string &path) {
  const uint64_t hash = file_hash(build_id, path);
  const auto number = static_cast<uint16_t>(hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48);
  return number ? number : 1;
}

} // namespace profile
