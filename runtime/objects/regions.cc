// A byte for each region, and one for each 4 GiB, so that going through them costs what is used of the address space.

#include "runtime/objects/regions.h"

#include "abi/shadow.h"
#include "runtime/core/system/arena.h"

namespace assay::objects {
namespace {

constexpr unsigned kShift = 22, kGroupShift = 32;
constexpr uint64_t kRegions = ASSAY_HIGH_END >> kShift, kGroups = ASSAY_HIGH_END >> kGroupShift;
constexpr uint64_t kInGroup = 1ULL << (kGroupShift - kShift);

struct {
  uint8_t *used;
  uint8_t groups[kGroups];
} constinit regions = {};

} // namespace

bool create_regions() {
  regions.used = (uint8_t *)reserve(kRegions);
  return regions.used != nullptr;
}

void note_region(uint64_t begin, uint64_t end) {
  for (uint64_t region = begin >> kShift; region <= (end - 1) >> kShift; region++)
    if (__builtin_expect(!regions.used[region], 0)) {
      regions.used[region] = 1;
      regions.groups[region / kInGroup] = 1;
    }
}

void for_each_region(void (*f)(uint64_t, uint64_t)) {
  uint64_t begin = 0, end = 0;
  for (uint64_t group = 0; group < kGroups; group++)
    for (uint64_t i = 0; regions.groups[group] && i < kInGroup; i++) {
      const uint64_t region = group * kInGroup + i;
      if (!regions.used[region])
        continue;
      if (region << kShift != end) {
        if (begin < end)
          f(begin, end);
        begin = region << kShift;
      }
      end = (region + 1) << kShift;
    }
  if (begin < end)
    f(begin, end);
}

} // namespace assay::objects
