// Runs skeletons on what a stream logged.
#pragma once

#include "profile/access_stream.h"
#include "trace/access_output.h"
#include "trace/skeleton.h"
#include "trace/steady_loop.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trace {

// A skeleton with its instructions numbered as AccessSites, ready to be run.
class RunnableSkeleton {
public:
  // `sites` grows by its instructions.
  RunnableSkeleton(const Skeleton &skeleton, uint32_t file,
                   std::vector<profile::AccessSite> &sites);

  static constexpr uint32_t kNone = UINT32_MAX;
  struct Block {
    uint32_t first, count; // in steps
    SkeletonBlock::End end;
    uint16_t condition;
    uint32_t next, choices;  // in next
    uint32_t steady = kNone; // in steady_loops
    uint32_t values = 0, accesses = 0;
    uint32_t bytes = 0; // that it takes, with its end; kNone: it cannot run at once
  };
  uint64_t address = 0;
  std::vector<RunnableStep> steps;
  std::vector<SteadyLoop> steady_loops;
  std::vector<Block> blocks;
  std::vector<uint32_t> next;

private:
  void find_steady_loop(uint32_t block);
  void measure(Block &block) const;
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
  SkeletonVariables variables{};
  LoggedCounts taken; // of all that has run
};

// Runs until the skeleton stops, or what is logged is used up: right behind the last byte that it
// takes, so that nothing is said of what may not have happened; or, if `to_the_end`, before the
// next byte that it would take. Returns how many bytes it took.
uint64_t run_skeleton(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
                      AccessOutput &output);

// Of a string instruction. Throws Failure for more than a process can make.
void check_repetitions(uint64_t times);

} // namespace trace
