// Objects whose memory is used again, by any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace base {

template <class T> class Spares {
public:
  // One that was given back, as it was then, or a new one.
  std::shared_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (spares_.empty())
      return std::make_shared<T>();
    std::shared_ptr<T> one = std::move(spares_.back());
    spares_.pop_back();
    return one;
  }
  void give_back(std::shared_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    spares_.push_back(std::move(one));
  }

private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<T>> spares_;
};

} // namespace base
