// The chunk map says where live chunks begin; headers are fetched in batches by process_vm_readv on
// ourselves, which stops at an unmapped page instead of faulting.

#include "runtime/heap/live_walk.h"

#include "runtime/core/mapped.h"
#include "runtime/core/pools.h"
#include "runtime/core/runtime.h"
#include "runtime/core/syscall.h"

namespace assay::heap {
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

} // namespace

void for_each_live(void (*f)(const void *, const ChunkHeader &)) {
  static Batch batch; // under the lock of flush()
  batch.count = 0; // a fork in the middle of a walk leaves the child what the parent had gathered
  runtime.chunks.for_each_region([f](uintptr_t base, const uint8_t *map, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 8) {
      uint64_t eight =
          __atomic_load_n((const uint64_t *)(map + i), __ATOMIC_RELAXED) & 0x0101010101010101;
      for (; eight; eight &= eight - 1) {
        size_t at = i + (size_t)__builtin_ctzll(eight) / 8;
        const void *block = (const void *)(base + at * kChunkAlign);
        batch.blocks[batch.count] = block;
        batch.remote[batch.count++] = {header_of(block), sizeof(ChunkHeader)};
        if (batch.count == kBatch)
          batch.run(f);
      }
    }
  });
  batch.run(f);
  runtime.side.for_each([f](const SideObject &object) { f(object.block, object.header); });
  for_each_pool_object(f);
  for_each_mapped(f);
}

} // namespace assay::heap
