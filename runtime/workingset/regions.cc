// The kernel's own map, each time as a whole: it is short, and changes seldom.

#include "runtime/workingset/regions.h"

#include "abi/lines.h"
#include "runtime/core/runtime.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/core/system/proc_maps.h"

namespace assay::workingset {
namespace {

constinit uint64_t last_map = 0; // hash of what was written

// Calls f for each line. Returns a hash of the map.
template <typename F> uint64_t each_line(F f) {
  uint64_t hash = known_stacks();
  MapsReader maps;
  for (MapsLine line; maps.next(line);) {
    hash = (hash ^ line.start) * 0x9e3779b97f4a7c15ULL ^ line.end;
    hash ^= hash >> 29;
    f(line);
  }
  return hash;
}

uint32_t kind_of(const MapsLine &line) {
  if (line.is_stack())
    return ASSAY_REGION_STACK;
  if (equal(line.path, "[heap]", 7))
    return ASSAY_REGION_BREAK;
  return line.path[0] == '/' ? ASSAY_REGION_FILE : ASSAY_REGION_ANONYMOUS;
}

void write(uint64_t tick, uint64_t start, uint64_t end, uint32_t kind, uint32_t owner,
           const char *name) {
  runtime.file.append(ASSAY_RECORD_Region, AssayRegion{start, end, tick, kind, owner}, name,
                      length_of(name) + 1);
}

} // namespace

void write_regions(uint64_t tick) {
  if (last_map && each_line([](const MapsLine &) {}) == last_map)
    return;
  last_map = each_line([&](const MapsLine &line) {
    if (kind_of(line) != ASSAY_REGION_ANONYMOUS)
      write(tick, line.start, line.end, kind_of(line), line.is_stack(), line.path);
  });
  for (uint32_t i = 0; i < known_stacks(); i++) {
    StackBounds stack = known_stack(i);
    write(tick, stack.low, stack.high, ASSAY_REGION_STACK, stack.thread, "");
  }
}

void reset_regions_in_child() {
  last_map = 0;
}

} // namespace assay::workingset
