// A direct-mapped table: a pair that must make room is written at once, and readers add up, as with
// heap info blocks.

#include "runtime/heap/free_sites.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"

namespace assay::heap {
namespace {

struct Place {
  SpinLock lock;
  ContextId context, free_context;
  uint64_t count, bytes;
};

constexpr size_t kPlaces = 1 << 16;

struct {
  GrowingArray<Place, kPlaces> table;
} constinit places = {};

// Under its lock.
void write_out(Place &p) {
  if (p.count)
    runtime.file.append(
        ASSAY_RECORD_HeapFreeContext,
        AssayHeapFreeContext{(uint32_t)p.context, (uint32_t)p.free_context, p.count, p.bytes});
  p.count = p.bytes = 0;
}

} // namespace

bool create_free_sites() {
  return places.table.create();
}

void add_free_site(ContextId context, ContextId free_context, uint64_t bytes) {
  uint64_t key = (uint64_t)context << 32 | (uint32_t)free_context;
  Place &p = places.table[(key * 0x9e3779b97f4a7c15ULL) >> 48];
  static_assert(kPlaces == 1 << 16);
  Locked locked(p.lock);
  if (p.context != context || p.free_context != free_context) {
    write_out(p);
    p.context = context;
    p.free_context = free_context;
  }
  p.count++;
  p.bytes += bytes;
}

void write_free_sites() {
  for (size_t i = 0; i < kPlaces; i++)
    if (places.table[i].count) {
      Locked locked(places.table[i].lock);
      write_out(places.table[i]);
    }
}

void clear_free_sites() {
  for (size_t i = 0; i < kPlaces; i++)
    if (places.table[i].count) {
      Locked locked(places.table[i].lock);
      places.table[i].count = places.table[i].bytes = 0;
    }
}

void reset_free_sites_in_child() {
  places.table.clear();
}

} // namespace assay::heap
