#include "trace/access_output.h"

#include <utility>

namespace trace {

AccessOutput::AccessOutput(Take take, TakeLoop take_loop)
    : take_(std::move(take)), take_loop_(std::move(take_loop)),
      batch_(std::make_unique<profile::Access[]>(kRoom)) {}

void AccessOutput::flush() {
  if (count_ == 0)
    return;
  const size_t count = std::exchange(count_, 0);
  taken_ += count;
  take_({batch_.get(), count});
}

void AccessOutput::loop(std::span<const profile::AccessRun> body, uint64_t times) {
  if (take_loop_ && times >= kLongLoop) {
    flush();
    take_loop_(body, times);
    taken_ += times * body.size();
    return;
  }
  for (uint64_t i = 0; i < times; i++)
    for (const profile::AccessRun &each : body) {
      profile::Access access = each.first;
      access.address += i * each.step;
      add(access);
    }
}

} // namespace trace
