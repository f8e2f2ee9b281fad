#include "trace/access_output.h"

namespace trace {

void AccessOutput::loop(std::span<const profile::AccessRun> body, uint64_t times) {
  if (take_loop_ && times >= kLongLoop) {
    if (!accesses_.empty())
      take();
    take_loop_(body, times);
    taken_ += times * body.size();
    return;
  }
  for (uint64_t i = 0; i < times; i++) {
    for (const profile::AccessRun &each : body) {
      accesses_.push_back(each.first);
      accesses_.back().address += i * each.step;
    }
    take_if_many();
  }
}

} // namespace trace
