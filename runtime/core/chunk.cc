// Three levels, so that a walk of the live chunks looks only where chunks were: groups of 4 GiB,
// regions of 4 MiB, a byte for each 32. A linked list of chunks was refused: it costs 16 bytes and
// a lock each.

#include "runtime/core/chunk.h"

#include "runtime/core/arena.h"

namespace assay {

// Not where the kernel puts the program's own mappings: four terabytes there would move these out of the windows
// that have shadows (abi/shadow.h).
constexpr uintptr_t kPlace = 0x500000000000;

bool ChunkMap::create() {
  groups_ = (uint8_t *)reserve(kGroups);
  regions_ = (uint8_t *)reserve(kGroups * kRegionsPerGroup);
  constexpr size_t kBytes = (1ULL << kAddressBits) / kChunkAlign;
  void *map = reserve(kBytes, kPlace);
  if (!map)
    map = reserve(kBytes);
  if (groups_ && regions_)
    map_ = (uint8_t *)map;
  return exists();
}

} // namespace assay
