#include "report/explain_parts.h"

#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {

std::string address_text(uint64_t address) {
  return fmt::format("{:#x}", address);
}

std::string share_text(uint64_t part, uint64_t whole) {
  if (whole == 0)
    return "-";
  double share = double(part) / double(whole);
  return part < whole && share > 0.99 ? fmt::format("{:.1f} %", std::min(share * 100, 99.9))
                                      : base::format_share(share);
}

} // namespace report
