#include "image/content_hash.h"

#include <llvm/Support/xxhash.h>

#include <cstdint>
#include <fmt/format.h>

namespace image {

std::string content_hash(std::span<const std::byte> bytes) {
  const llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

} // namespace image
