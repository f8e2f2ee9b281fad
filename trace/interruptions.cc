#include "trace/interruptions.h"

#include <algorithm>
#include <utility>

namespace trace {

void Interruptions::add(const TracedStream &handler) {
  const Handler added = {handler.parent_bytes, handler.number, handler.has_returned()};
  const auto at = std::upper_bound(handlers_.begin(), handlers_.end(), added,
                                   [](const Handler &a, const Handler &b) {
                                     return std::pair(a.at, a.number) < std::pair(b.at, b.number);
                                   });
  handlers_.insert(at, added);
}

uint64_t Interruptions::end_of_run(uint64_t offset, uint64_t from, uint64_t to) const {
  const uint64_t at = next_at();
  return std::clamp(at > offset ? at - offset : 0, from, to);
}

Interruptions::Handler Interruptions::take() {
  const Handler next = handlers_.front();
  handlers_.pop_front();
  return next;
}

bool Interruptions::may_have_left(uint64_t bytes) const {
  return std::ranges::any_of(handlers_, [&](const Handler &handler) {
    return handler.at >= bytes && !handler.has_returned;
  });
}

} // namespace trace
