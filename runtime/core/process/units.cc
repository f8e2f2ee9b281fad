#include "runtime/core/process/units.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/sites.h"
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
  each_site(sites, size, [&](uint32_t kind, uint32_t, const char *body, const char *end) {
    AssaySiteUnit unit;
    if (kind != ASSAY_SITE_UNIT || !take(body, end, unit))
      return;
    for (uint32_t bit = 0, mode; bit < unit.mode_count && take(body, end, mode); bit++)
      if (unit.tools >> bit & 1)
        agreed &= take_unit(bit, mode);
    runtime.tools_wanted |= unit.tools;
  });
  return agreed;
}

} // namespace assay
