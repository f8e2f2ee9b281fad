// Visits every live object without stopping the program, and when tools do so.
#pragma once

#include <stdint.h>

#include "runtime/core/objects/chunk.h"
#include "runtime/core/system/clock.h"

namespace assay {

// Calls f(block, header) for every live object: chunks, objects beside, of pools and of mmap, one at a time, from the
// caller's thread. Chunks may be freed, and their memory unmapped, meanwhile.
//
// Where `is_of_interest` says no to a window of the program's bytes, chunks that lie within it are left out, unless one
// of them is watched (ChunkMap).
void for_each_live(void (*f)(const void *block, const ChunkHeader &header),
                   bool (*is_of_interest)(uint64_t begin, uint64_t end) = nullptr);

// Which flushes walk: walks take a hundredth of the time.
class WalkPace {
public:
  // A walk takes some 30 to 50 ns an object. The first one waits for a microsecond of run an
  // object, so that it costs 3 to 5 % of the run at most; those after it know what they cost.
  bool is_due(uint64_t objects) const { return now_us() >= next_us_ && now_us() >= objects; }
  void begin() { began_us_ = now_us(); }
  // The walk's moment: all live objects end there.
  uint64_t began_us() const { return began_us_; }
  uint64_t took_us() const { return now_us() - began_us_; }
  void end(uint64_t longest_wait_us = UINT64_MAX) {
    const uint64_t wait = 99 * took_us();
    next_us_ = now_us() + (wait < longest_wait_us ? wait : longest_wait_us);
  }
  void reset_in_child() { next_us_ = 0; }

private:
  uint64_t began_us_ = 0, next_us_ = 0;
};

} // namespace assay
