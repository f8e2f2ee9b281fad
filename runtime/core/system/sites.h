// The entries of a section `assay_sites` (abi/sites.h).
#pragma once

#include <stddef.h>

#include "abi/sites.h"

namespace assay {

// Calls f(kind, offset of the entry, first byte behind its AssaySite, end) for each whole entry.
template <typename F> void each_site(const void *sites, uint64_t size, F f) {
  const char *begin = (const char *)sites, *at = begin, *end = begin + size;
  for (AssaySite site; (size_t)(end - at) >= sizeof site; at += site.size) {
    __builtin_memcpy(&site, at, sizeof site);
    if (site.size < sizeof site || site.size > (uint64_t)(end - at))
      break;
    f(site.kind, (uint32_t)(at - begin), at + sizeof site, at + site.size);
  }
}

} // namespace assay
