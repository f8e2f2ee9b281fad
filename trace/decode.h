// From what was logged to the accesses.
#pragma once

#include "trace/skeleton_run.h"
#include "trace/trace_data.h"

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace trace {

// How far a stream has been decoded.
struct StreamPosition {
  SkeletonPosition skeleton;
  bool is_at_end = false;                // what follows was never logged
  std::vector<bool> *executed = nullptr; // marked, by number of the group, where one was logged
};

class GroupDecoder {
public:
  // Of a file; groups are numbered as they come, from file.first_group on. The skeletons that they
  // start are added before.
  void add_skeletons(const TracedFile &file, std::span<const Skeleton> skeletons);
  void add(const TracedFile &file, std::span<const Group> groups);
  void add(const TracedMapping &mapping);

  const std::vector<profile::AccessSite> &sites() const { return sites_; }

  // Decodes `data` from `from` up to `to` or a little further, and hands on its accesses; returns
  // where it stopped. What follows from the last bytes alone is left until more comes, or finish().
  // Throws Failure for what nothing logs.
  uint64_t decode(const TracedStream &stream, StreamPosition &position,
                  std::span<const std::byte> data, uint64_t from, uint64_t to,
                  AccessOutput &output) const;
  // The stream has ended, and its thread has gone on until then: what follows without further bytes.
  void finish(StreamPosition &position, AccessOutput &output) const;

  uint64_t bias_of(uint32_t program, uint32_t file) const;

private:
  struct Template { // an access, ready to be computed
    uint64_t offset;
    uint32_t site;
    uint32_t file;
    uint16_t size;
    bool write, in_image, thread_local_;
    uint8_t terms, times, left;
    AddressTerm term[2];
  };
  struct Shape {
    uint32_t first = 0, count = 0; // in templates_
    uint32_t bytes = 0;            // of the group; 0: there is no such group
    uint32_t loop = UINT32_MAX;    // in loops_
    uint32_t start = UINT32_MAX;   // in starts_
  };
  struct Start {
    uint32_t skeleton, block, file;
    std::vector<uint8_t> registers;
  };
  class Run;

  std::vector<Shape> shapes_; // by number of the group
  std::vector<Template> templates_;
  std::vector<LoopOfGroup> loops_;
  std::vector<Start> starts_;
  std::deque<RunnableSkeleton> skeletons_;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> skeletons_of_; // by file: the first, how many
  std::vector<profile::AccessSite> sites_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> biases_; // by program and file
};

} // namespace trace
