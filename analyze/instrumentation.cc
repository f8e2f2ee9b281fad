// Counting code is put between the program's own, so that no function's name tells it. What it accesses does: counters
// lie at a constant behind the program's address, and what asks whether to count is a variable.

#include "analyze/instrumentation.h"

#include "abi/shadow.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace analyze {
namespace {

// "rcx+0x50000000" of "inc qword ptr gs:[rcx+0x50000000]"; empty: the instruction accesses no memory.
std::string_view address_in(std::string_view text) {
  const size_t begin = text.find('['), end = text.find(']');
  return begin < end && end != text.npos ? text.substr(begin + 1, end - begin - 1)
                                         : std::string_view();
}

std::optional<uint64_t> constant_in(std::string_view address) {
  const size_t begin = address.rfind("0x");
  uint64_t constant = 0;
  if (begin == address.npos ||
      std::from_chars(address.data() + begin + 2, address.data() + address.size(), constant, 16)
              .ec != std::errc())
    return std::nullopt;
  return constant;
}

} // namespace

bool is_instrumentation(std::string_view text, const image::Data &data) {
  const std::string_view address = address_in(text);
  const std::optional<uint64_t> constant = constant_in(address);
  if (!constant)
    return false;
  if (address.starts_with("0x")) {
    const image::DataSymbol *variable = data.symbol_at(*constant);
    return variable && variable->linkage_name.starts_with("__assay_");
  }
  constexpr uint64_t kShadows[] = {ASSAY_LINES_BASE, ASSAY_COUNTERS_BASE, ASSAY_WORDS_BASE,
                                   ASSAY_HALF_LINES_BASE};
  return std::ranges::find(kShadows, *constant) != std::end(kShadows);
}

} // namespace analyze
