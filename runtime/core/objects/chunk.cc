// Three levels, so that a walk of the live chunks looks only where chunks were: groups of 4 GiB,
// regions of 4 MiB, a byte for each 32. A linked list of chunks was refused: it costs 16 bytes and
// a lock each.
//
// A walk reads headers that other threads may give back at that moment, and with them the page.
// Asking the kernel to read each (process_vm_readv) takes longer than all the rest of a walk. So
// the walker says which window it reads, and a thread that gives back a chunk there waits. That is
// a load at each free; the fence that it needs is made by the walker, on behalf of all threads
// (membarrier).

#include "runtime/core/objects/chunk.h"

#include "abi/shadow.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/syscall.h"

namespace assay {

// Not where the kernel puts the program's own mappings: four terabytes there would move these out of the windows
// that have shadows (abi/shadow.h).
constexpr uintptr_t kPlace = 0x500000000000;

constexpr long kPrivateExpedited = 1 << 3; // MEMBARRIER_CMD_PRIVATE_EXPEDITED

static bool register_barrier() {
  return !sys::failed(
      sys::call(SYS_membarrier, 1 << 4)); // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
}

bool ChunkMap::create() {
  groups_ = (uint8_t *)reserve(kGroups);
  regions_ = (uint8_t *)reserve(kGroups * kRegionsPerGroup);
  constexpr size_t kBytes = (1ULL << kAddressBits) / kChunkAlign;
  void *map = reserve(kBytes, kPlace);
  if (!map)
    map = reserve(kBytes);
  if (groups_ && regions_)
    map_ = (uint8_t *)map;
  if (map_)
    note_spans();
  has_barrier_ = register_barrier();
  return exists();
}

// Only what maps the addresses where programs have objects is in use.
void ChunkMap::note_spans() const {
  const auto begin = (uint64_t)map_;
#define ASSAY_NOTE(window)                                                                         \
  note_own_span(begin + ASSAY_##window##_BEGIN / kChunkAlign,                                      \
                begin + ASSAY_##window##_END / kChunkAlign);
  ASSAY_PROGRAM_WINDOWS(ASSAY_NOTE)
#undef ASSAY_NOTE
  note_spare_span(begin, begin + (1ULL << kAddressBits) / kChunkAlign);
}

bool ChunkMap::begin_window(uintptr_t begin) {
  if (!has_barrier_)
    return false;
  __atomic_store_n(&walked_window_, begin >> kWindowShift, __ATOMIC_SEQ_CST);
  if (!sys::failed(sys::call(SYS_membarrier, kPrivateExpedited)))
    return true;
  end_window();
  return has_barrier_ = false;
}

void ChunkMap::end_window() {
  __atomic_store_n(&walked_window_, 0, __ATOMIC_RELEASE);
}

void ChunkMap::wait_for_walk(uint64_t window) {
  while (__atomic_load_n(&walked_window_, __ATOMIC_ACQUIRE) == window)
    sys::yield();
}

void ChunkMap::reset_in_child() {
  walked_window_ = 0;
  has_barrier_ = register_barrier();
}

} // namespace assay
