// A table by address whose entries carry the number of their walk: old ones are free again.

#include "runtime/heap/shared_blocks.h"

#include "runtime/core/system/arena.h"
#include "runtime/core/system/losses.h"

namespace assay::heap {
namespace {

struct Met {
  const void *counter;
  uint64_t walk;
};

constexpr uint64_t kSlots = 1 << 24;

struct {
  Met *table;
  uint64_t walk, met;
} constinit shared = {};

} // namespace

bool create_shared_blocks() {
  shared.table = (Met *)reserve(kSlots * sizeof(Met));
  return shared.table != nullptr;
}

void begin_shared_blocks() {
  shared.walk++;
  shared.met = 0;
}

bool meet_shared_block(const void *counter) {
  if (shared.met > kSlots / 2) { // blocks of a gigabyte of small objects
    count_loss(ASSAY_LOSS_no_memory, 1);
    return true;
  }
  uint64_t at = ((uint64_t)counter >> 2) * 0x9e3779b97f4a7c15ULL >> 40;
  for (;; at = (at + 1) % kSlots) {
    Met &m = shared.table[at];
    if (m.walk != shared.walk) {
      m = {counter, shared.walk};
      shared.met++;
      return true;
    }
    if (m.counter == counter)
      return false;
  }
}

} // namespace assay::heap
