// Which stripe of counters (abi/stripes.h) each thread counts in. As many threads as there are stripes
// lose no count to each other; more share, and two that share one may.
#pragma once

#include "abi/stripes.h"

namespace assay::heap {

// How much higher this thread's counters are: the base of its gs segment.
extern thread_local constinit uint64_t own_stripe __attribute__((tls_model("initial-exec")));

// Gives the calling thread, which has just begun, a stripe that no living thread has, or the next in
// turn.
void take_stripe();

// Stripes below this number are or were in use.
extern constinit uint32_t used_stripes;

// May blocks of these addresses have counters in other stripes than the first?
inline bool in_stripes(uint64_t begin, uint64_t end) {
  return used_stripes > 1 &&
         (end <= ASSAY_LOW_END || (begin >= ASSAY_MMAP_BEGIN && end <= ASSAY_MMAP_END) ||
          (begin >= ASSAY_PIE_BEGIN && end <= ASSAY_PIE_END) ||
          (begin >= ASSAY_UNLIMITED_BEGIN && end <= ASSAY_UNLIMITED_END));
}

// In the child of a fork: the other threads are gone, and all counters are zero.
void reset_stripes_in_child();

} // namespace assay::heap
