// All units of a program must lay their shadows out alike; the first of each tool says how. What is
// counted beside the heap may differ.

#include "runtime/core/units.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"

namespace assay {
namespace {

// The bits of `own` that the mask selects are those of `more`, unless another unit came first.
bool join(uint32_t &own, uint32_t more, uint32_t layout, bool first) {
  bool agrees = first || ((own ^ more) & layout) == 0;
  own |= first ? more : more & ~layout;
  return agrees;
}

} // namespace

bool read_units(const void *sites, uint64_t size) {
  bool agreed = true;
  const char *at = (const char *)sites, *end = at + size;
  for (AssaySite site; at + sizeof site <= end; at += site.size) {
    __builtin_memcpy(&site, at, sizeof site);
    if (site.size < sizeof site || site.size > (uint64_t)(end - at))
      break;
    AssaySiteType unit;
    if (site.kind != ASSAY_SITE_UNIT || site.size < sizeof site + sizeof unit)
      continue;
    __builtin_memcpy(&unit, at + sizeof site, sizeof unit);
    uint64_t tools = unit.hash ? unit.hash : tool_bit::heap, known = runtime.tools_wanted;
    uint32_t counters = (uint32_t)unit.size, lines = (uint32_t)(unit.size >> 32);
    if (tools & tool_bit::heap) {
      agreed &= join(runtime.counters, counters, ASSAY_COUNTERS_LAYOUT, !(known & tool_bit::heap));
      runtime.fixed_counters |= !(counters & ASSAY_COUNTERS_DYNAMIC);
    }
    if (tools & tool_bit::workingset) {
      agreed &= join(runtime.lines, lines, ASSAY_LINES_FORM, !(known & tool_bit::workingset));
      runtime.fixed_lines |= !(lines & ASSAY_LINES_DYNAMIC);
    }
    runtime.tools_wanted |= tools;
  }
  return agreed;
}

} // namespace assay
