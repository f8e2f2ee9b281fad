// Pages of memory, as the kernel maps them.
#pragma once

#include "abi/shadow.h"

namespace assay {

constexpr uint64_t kPage = ASSAY_PAGE_BYTES;

// The first byte of an address's page; and an address rounded up to a page.
inline uint64_t page_down(uint64_t address) {
  return address & ~(kPage - 1);
}
inline uint64_t page_up(uint64_t address) {
  return page_down(address + kPage - 1);
}

} // namespace assay
