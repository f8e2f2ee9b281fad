// Skeletons as C that a person can read and any compiler takes (trace/c/skeleton.h): loops are
// loops, variables have the names of registers, and each access names its instruction.
#pragma once

#include "trace/groups.h"
#include "trace/skeleton.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trace {

// Where a skeleton begins.
struct SkeletonStart {
  uint32_t number = 0; // what is logged, less 1
  uint32_t block = 0;
  std::vector<uint8_t> registers; // that are logged there
};

// A function `name(struct stream *s, int start)`; the i-th start is `case i`. Blocks that no start
// leads to are left out.
std::string skeleton_text(const Skeleton &skeleton, const std::string &name,
                          std::span<const SkeletonStart> starts);

// The same of a group that is logged by itself.
std::string group_text(const Group &group, const std::string &name);

} // namespace trace
