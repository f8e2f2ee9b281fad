// An unwind entry describes one run of code. What lies beside the instructions is in the order in
// which it was needed; each stretch of it whose addresses go up is one more run.

#include "trace/moved_places.h"

#include <algorithm>

namespace trace {

void MovedPlaces::cover(UnwindTables &unwind, const image::UnwindRange &frame, uint64_t begin,
                        uint64_t end, const MovedBlock &moved_block) const {
  auto cover_run = [&](Places places, uint32_t run_end) {
    auto place = [&](uint64_t address) {
      auto at =
          std::lower_bound(places.begin(), places.end(), address,
                           [](const Place &each, uint64_t wanted) { return each.first < wanted; });
      return at == places.end() ? run_end : at->second;
    };
    const uint32_t from = place(begin), to = place(end);
    if (from < to)
      unwind.add(
          frame, from, to, [&](uint64_t address) { return place(std::max(address, begin)); },
          moved_block);
  };
  cover_run(instructions_, end_);
  for (size_t i = 0; i < sides_.size();) {
    size_t next = i + 1;
    while (next < sides_.size() && sides_[next].first >= sides_[next - 1].first)
      next++;
    cover_run(Places(sides_).subspan(i, next - i),
              next < sides_.size() ? sides_[next].second : sides_end_);
    i = next;
  }
}

} // namespace trace
