// Three levels, so that a walk of the live chunks looks only where chunks were: groups of 4 GiB,
// regions of 4 MiB, a byte for each 32. A linked list of chunks was refused: it costs 16 bytes and
// a lock each.

#include "runtime/core/chunk.h"

#include "runtime/core/arena.h"

namespace assay {

bool ChunkMap::create() {
  groups_ = (uint8_t *)reserve(kGroups);
  regions_ = (uint8_t *)reserve(kGroups * kRegionsPerGroup);
  auto *map = (uint8_t *)reserve((1ULL << kAddressBits) / kChunkAlign);
  if (groups_ && regions_)
    map_ = map;
  return exists();
}

} // namespace assay
