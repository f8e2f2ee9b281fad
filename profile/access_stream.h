// A stream of memory accesses, as traces yield it and analyses take it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace profile {

// One access. `site` is an index into AccessSites.
struct Access {
  uint64_t address = 0; // in the process
  uint32_t site = 0;
  uint16_t size = 0; // bytes
  bool is_write = false;
};

// An instruction that accesses memory.
struct AccessSite {
  uint32_t file = 0;   // number of the executable or shared object, from 1
  uint64_t offset = 0; // the instruction's address in its ELF image
  bool operator==(const AccessSite &) const = default;
};

// What one instruction accesses in the iterations of a loop: in the first one, and how far each
// goes beyond the one before, modulo 2^64.
struct AccessRun {
  Access first;
  uint64_t step = 0;
};

// Whose accesses follow.
struct AccessOrigin {
  uint32_t process = 0, thread = 0;
  uint32_t stream = 0; // a number of its own for each thread and each signal handler's run
  bool in_handler = false;
};

// Takes accesses in the order in which each thread made them. One thread calls; spans and
// references hold until the call returns. What a sink throws ends the replay.
class AccessSink {
public:
  virtual ~AccessSink() = default;
  // A batch of one thread's; never empty.
  virtual void accesses(const AccessOrigin &origin, std::span<const Access> batch) = 0;
  // So many iterations of a loop (0: none), each with all accesses of its body in their order. Unless it is overridden,
  // accesses() is called with them, in batches: that takes time in proportion to `times`.
  virtual void loop(const AccessOrigin &origin, std::span<const AccessRun> body, uint64_t times);
};

} // namespace profile
