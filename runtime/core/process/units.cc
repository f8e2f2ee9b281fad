#include "runtime/core/process/units.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/tool_callbacks.h"

namespace assay {
namespace {

template <typename T> bool take(const char *&at, const char *end, T &value) {
  if ((size_t)(end - at) < sizeof value)
    return false;
  __builtin_memcpy(&value, at, sizeof value);
  at += sizeof value;
  return true;
}

} // namespace

bool read_units(const void *sites, uint64_t size) {
  bool agreed = true;
  const char *at = (const char *)sites, *end = at + size;
  for (AssaySite site; (size_t)(end - at) >= sizeof site; at += site.size) {
    __builtin_memcpy(&site, at, sizeof site);
    if (site.size < sizeof site || site.size > (uint64_t)(end - at))
      break;
    const char *body = at + sizeof site, *body_end = at + site.size;
    AssaySiteUnit unit;
    if (site.kind != ASSAY_SITE_UNIT || !take(body, body_end, unit))
      continue;
    for (uint32_t bit = 0, mode; bit < unit.mode_count && take(body, body_end, mode); bit++)
      if (unit.tools >> bit & 1)
        agreed &= take_unit(bit, mode);
    runtime.tools_wanted |= unit.tools;
  }
  return agreed;
}

} // namespace assay
