// Runs skeletons on what a stream logged.
#pragma once

#include "profile/access_stream.h"
#include "trace/skeleton.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace trace {

// A skeleton with its instructions numbered as AccessSites, ready to be run.
class RunnableSkeleton {
public:
  // `sites` grows by its instructions.
  RunnableSkeleton(const Skeleton &skeleton, uint32_t file,
                   std::vector<profile::AccessSite> &sites);

  struct Step {
    SkeletonStep::Kind kind;
    bool write;
    uint16_t size;
    uint32_t site;
    assay_uop uop;
  };
  struct Block {
    uint32_t first, count; // in steps
    SkeletonBlock::End end;
    uint16_t condition;
    uint32_t next, choices; // in next
  };
  uint64_t address = 0;
  std::vector<Step> steps;
  std::vector<Block> blocks;
  std::vector<uint32_t> next;
};

// What was logged: values of registers, and which way branches went.
struct LoggedCounts {
  uint64_t values = 0, branches = 0;
};

// Where a skeleton is that waits for what comes next in its stream.
struct SkeletonPosition {
  const RunnableSkeleton *skeleton = nullptr; // null: none is running
  uint32_t block = 0, step = 0;
  uint32_t wanted = 0; // bytes at once, where there were fewer
  std::array<uint64_t, kSkeletonVariables> variables{};
  LoggedCounts taken; // of all that has run
};

// Runs until the skeleton stops, or what is logged is used up: right behind the last byte that it takes, so that nothing is said of what may not have
// happened; or, if `to_the_end`, before the next byte that it would take. Returns how many bytes it took. `take` as in GroupDecoder::decode.
uint64_t run_skeleton(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
                      std::vector<profile::Access> &accesses,
                      const std::function<void(std::vector<profile::Access> &)> &take);

} // namespace trace
