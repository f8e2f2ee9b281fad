// A cache of blocks, set-associative, in which the block that was used longest ago makes room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace analyze {

// "32KiB,8" or "32KiB,8,64": bytes, ways, bytes of a line.
struct CacheShape {
  uint64_t bytes = 0;
  uint32_t ways = 0;
  uint32_t line_bytes = 64;
  uint64_t sets() const { return bytes / (uint64_t{ways} * line_bytes); }
  std::string text() const; // as it is parsed
};
// `option` is what the user wrote it behind: "--l1". Throws Failure.
CacheShape parse_cache_shape(std::string_view text, std::string_view option);

// "64,4": entries, ways.
struct TlbShape {
  uint64_t entries = 0;
  uint32_t ways = 0;
  std::string text() const;
};
TlbShape parse_tlb_shape(std::string_view text, std::string_view option);

class Cache {
public:
  Cache(uint64_t sets, uint32_t ways) : sets_(sets), ways_(ways), blocks_(sets * ways, kNone) {}

  // Whether the block is there; from now on it is, as the last one used.
  bool touch(uint64_t block) {
    uint64_t *way = blocks_.data() + set_of(block) * ways_;
    if (*way == block)
      return true;
    uint64_t before = *way; // moves one place down
    *way = block;
    for (uint32_t i = 1; i < ways_; i++) {
      std::swap(before, way[i]);
      if (before == block)
        return true;
    }
    return false;
  }

private:
  static constexpr uint64_t kNone = UINT64_MAX;
  uint64_t set_of(uint64_t block) const {
    return (sets_ & (sets_ - 1)) == 0 ? block & (sets_ - 1) : block % sets_;
  }
  uint64_t sets_;
  uint32_t ways_;
  std::vector<uint64_t> blocks_; // set by set, the last one used first
};

} // namespace analyze
