// Groups of objects that ended are added up; of what is alive only the last complete walk is kept.
//
// The first pass finds the number of the last walk, the second adds up and copies. A group's key
// fits one word: both contexts, the class of sizes as a number, and the kind. Its sums have room
// for as many words as it had so far; if a record has more, they are copied to a wider place. The
// old place is not used again: all of it is unmapped at the end.
//
// Table and sums lie in reserved address space, of which only what is touched is memory. If it is
// full, the compaction fails, and the file stays as it is.

#include "runtime/objects/compaction.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/key_table.h"

namespace assay::objects {
namespace {

constexpr uint64_t kGroups = 1 << 20;
constexpr uint64_t kMaxBytes = 8ULL << 30; // of sums: address space

struct Sums {
  uint32_t cell_count, room;
  AssayObjectGroup group;
  AssayWordCell cells[];
};

struct Entry {
  uint64_t key; // 0: free
  Sums *sums;
};

// While a compaction works.
struct {
  Entry *entries;
  char *bytes;
  uint64_t used;
  uint64_t last_walk;
} constinit work = {};

bool begin() {
  work = {};
  work.entries = (Entry *)reserve(kGroups * sizeof(Entry));
  work.bytes = (char *)reserve(kMaxBytes);
  return work.entries && work.bytes;
}

void end() {
  if (work.entries)
    sys::unmap(work.entries, kGroups * sizeof(Entry));
  if (work.bytes)
    sys::unmap(work.bytes, kMaxBytes);
  work = {};
}

void look(const FileRecord &r) {
  if (r.header.kind == ASSAY_RECORD_ObjectWalk)
    work.last_walk = r.as<AssayObjectWalk>().walk;
}

// Classes of sizes are numbered: 16, and 4 to a doubling beyond.
uint64_t key_of(const AssayObjectGroup &g) {
  static_assert(StackDepot::kMaxContexts <= 1 << 24);
  uint64_t size_class = g.class_bytes / 16;
  if (g.class_bytes > 256) {
    unsigned power = 63 - (unsigned)__builtin_clzll(g.class_bytes);
    size_class = 16 + (power - 8) * 4 + (g.class_bytes >> (power - 2) & 3);
  }
  return (uint64_t)g.context << 38 | (uint64_t)g.free_context << 12 | size_class << 2 | g.kind;
}

Sums *make(uint32_t cells) {
  const uint64_t bytes = sizeof(Sums) + cells * sizeof(AssayWordCell);
  if (work.used + bytes > kMaxBytes)
    return nullptr;
  auto *sums = (Sums *)(work.bytes + work.used);
  work.used += bytes;
  sums->room = cells;
  return sums;
}

Compacted add(const FileRecord &r) {
  const auto g = r.as<AssayObjectGroup>();
  Entry *entry = find(work.entries, kGroups, key_of(g), kGroups);
  if (!entry)
    return Compacted::kFailed;
  const auto count = (uint32_t)(r.tail_size / sizeof(AssayWordCell));
  if (!entry->sums || entry->sums->room < count) {
    Sums *wider = make(count);
    if (!wider)
      return Compacted::kFailed;
    if (const Sums *old = entry->sums) {
      wider->cell_count = old->cell_count;
      wider->group = old->group;
      __builtin_memcpy(wider->cells, old->cells, old->cell_count * sizeof(AssayWordCell));
    }
    entry->sums = wider;
  }
  Sums &sums = *entry->sums;
  AssayObjectSums before = sums.group.sums;
  sums.group = g;
  sums.group.sums = before;
  assay_object_sums_add(&sums.group.sums, &g.sums);
  for (uint32_t i = 0; i < count; i++) {
    AssayWordCell cell;
    __builtin_memcpy(&cell, r.tail + i * sizeof cell, sizeof cell);
    sums.cells[i].hotness += cell.hotness;
    sums.cells[i].accessed += cell.accessed;
    sums.cells[i].again += cell.again;
  }
  sums.cell_count = sums.cell_count > count ? sums.cell_count : count;
  return Compacted::kDone;
}

Compacted take(const FileRecord &r, bool is_void, ProfileFile &to) {
  switch (r.header.kind) {
  case ASSAY_RECORD_ObjectGroup: {
    if (is_void)
      return Compacted::kDone;
    uint64_t walk = r.as<AssayObjectGroup>().walk;
    return walk ? copy_record(r, walk == work.last_walk, to) : add(r);
  }
  case ASSAY_RECORD_ObjectGlobals: {
    uint64_t walk = r.as<AssayObjectGlobals>().walk;
    return copy_record(r, !is_void && (walk == 0 || walk == work.last_walk), to);
  }
  case ASSAY_RECORD_ObjectWalk:
    return copy_record(r, !is_void && r.as<AssayObjectWalk>().walk == work.last_walk, to);
  case ASSAY_RECORD_ObjectsMode: return copy_record(r, true, to);
  default: return Compacted::kNotMine;
  }
}

void write_sums(ProfileFile &to) {
  for (uint64_t i = 0; i < kGroups; i++)
    if (const Sums *sums = work.entries[i].key ? work.entries[i].sums : nullptr)
      to.append(ASSAY_RECORD_ObjectGroup, sums->group, sums->cells,
                sums->cell_count * sizeof(AssayWordCell));
}

} // namespace

constinit const Compactor compactor = {begin, look, take, write_sums, end};

} // namespace assay::objects
