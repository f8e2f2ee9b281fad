// The chunk map says where live chunks begin. Headers are read where they are, in windows from which nobody gives back
// a chunk meanwhile (ChunkMap::begin_window). Where the kernel cannot see to that, or a page is not mapped, they are
// fetched in batches by process_vm_readv on ourselves, which stops there instead of faulting.

#include "runtime/core/process/live_walk.h"

#include "runtime/core/objects/pools.h"
#include "runtime/core/process/mapped.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

constexpr size_t kBatch = 256;

struct Batch {
  size_t count = 0;
  const void *blocks[kBatch];
  ChunkHeader headers[kBatch];
  iovec remote[kBatch];

  void run(void (*f)(const void *, const ChunkHeader &)) {
    for (size_t done = 0; done < count;) {
      iovec local = {headers + done, (count - done) * sizeof(ChunkHeader)};
      long got = sys::read_own_memory(&local, 1, remote + done, count - done);
      size_t read = got > 0 ? (size_t)got / sizeof(ChunkHeader) : 0;
      for (size_t i = done; i < done + read; i++)
        if (runtime.chunks.owns(blocks[i]) &&
            headers[i].check == chunk_check(blocks[i], headers[i]))
          f(blocks[i], headers[i]);
      done += read + (done + read < count); // the one that could not be read is gone
    }
    count = 0;
  }
};

// Calls f(block) for each chunk of [begin, begin + 32 * bytes) that the map says is live.
template <typename F> void each_chunk(uintptr_t begin, const uint8_t *map, size_t bytes, F f) {
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t eight =
        __atomic_load_n((const uint64_t *)(map + i), __ATOMIC_ACQUIRE) & 0x0101010101010101;
    for (; eight; eight &= eight - 1)
      f((const void *)(begin + (i + (size_t)__builtin_ctzll(eight) / 8) * kChunkAlign));
  }
}

constexpr size_t kWindowBytes = (1 << ChunkMap::kWindowShift) / kChunkAlign; // of map

// A program that unmaps what malloc gave it does not do so in the middle of this.
bool is_mapped(uintptr_t window) {
  constexpr size_t kPages = (1 << ChunkMap::kWindowShift) / kPage;
  unsigned char resident[kPages];
  return !sys::failed(
      sys::call(SYS_mincore, (long)window, 1 << ChunkMap::kWindowShift, (long)resident));
}

// The bits that any byte of a map has, eight bytes at a time.
uint64_t bits_of_any(const uint8_t *map, size_t bytes) {
  uint64_t any = 0;
  for (size_t i = 0; i < bytes; i += 8)
    any |= *(const uint64_t *)(map + i);
  return any;
}

constexpr uint64_t kWatched = 0x0202020202020202; // of eight bytes of map (ChunkMap::watch)

// Bytes of map before the last chunk of a window: that one may reach beyond it.
size_t up_to_last_chunk(const uint8_t *map, size_t bytes) {
  while (bytes && !map[bytes - 1])
    bytes--;
  return bytes ? (bytes - 1) & ~(size_t)7 : 0;
}

} // namespace

void for_each_live(void (*f)(const void *, const ChunkHeader &),
                   bool (*is_of_interest)(uint64_t, uint64_t)) {
  static Batch batch; // under the lock of flush()
  batch.count = 0; // a fork in the middle of a walk leaves the child what the parent had gathered
  runtime.chunks.for_each_region([&](uintptr_t base, const uint8_t *map, size_t bytes) {
    for (size_t i = 0; i < bytes; i += kWindowBytes) {
      uintptr_t window = base + i * kChunkAlign;
      const uint64_t any = bits_of_any(map + i, kWindowBytes);
      if (!any)
        continue;
      size_t skipped = 0;
      if (is_of_interest && !(any & kWatched) &&
          !is_of_interest(window, window + kWindowBytes * kChunkAlign))
        skipped = up_to_last_chunk(map + i, kWindowBytes);
      // The header of a window's first chunk may lie before it, in the window before.
      bool readable = !skipped && is_mapped(window) && runtime.chunks.begin_window(window);
      each_chunk(window + skipped * kChunkAlign, map + i + skipped, kWindowBytes - skipped,
                 [&](const void *block) {
                   const ChunkHeader *header = header_of(block);
                   if (readable && (uintptr_t)header >= window) {
                     if (header->check == chunk_check(block, *header))
                       f(block, *header);
                     return;
                   }
                   batch.blocks[batch.count] = block;
                   batch.remote[batch.count++] = {(void *)header, sizeof(ChunkHeader)};
                   if (batch.count == kBatch)
                     batch.run(f);
                 });
      if (readable)
        runtime.chunks.end_window();
    }
  });
  batch.run(f);
  runtime.side.for_each([f](const SideObject &object) { f(object.block, object.header); });
  for_each_pool_object(f);
  for_each_mapped(f);
}

} // namespace assay
