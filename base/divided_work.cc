// Threads take the next item when they are done with one: items differ a thousandfold in size.
// Where a thread cannot be had, those that there are do all.

#include "base/divided_work.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

namespace base {
namespace {

class Queue {
public:
  Queue(size_t items, const Division &division, const std::function<uint64_t(size_t)> &size)
      : items_(items), room_(division.room), share_(division.share), size_(size) {}

  // Until none is left.
  void work_off(const std::function<void(size_t, unsigned)> &work, unsigned thread) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_over() || may_take(thread); });
      if (is_over())
        return;
      const size_t item = next_++;
      const uint64_t size = size_of(item);
      taken_ += size;
      changed_.notify_all();
      lock.unlock();
      std::exception_ptr failure;
      try {
        work(item, thread);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      taken_ -= size;
      if (failure && !failure_)
        failure_ = failure;
      changed_.notify_all();
    }
  }

  void throw_failure() const {
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  bool is_over() const { return next_ == items_ || failure_; }
  uint64_t size_of(size_t item) const { return std::min(size_(item), room_); }
  bool may_take(unsigned thread) const {
    const uint64_t size = size_of(next_);
    return size <= room_ - taken_ && (thread == 0 || size <= share_);
  }

  const size_t items_;
  const uint64_t room_, share_;
  const std::function<uint64_t(size_t)> &size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0;
  uint64_t taken_ = 0; // of the room
  std::exception_ptr failure_;
};

} // namespace

unsigned usable_cpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
    return static_cast<unsigned>(std::max(CPU_COUNT(&cpus), 1));
  return std::max(std::thread::hardware_concurrency(), 1u); // of machines with more cpus than fit
}

void divide_work(size_t items, Division division, const std::function<uint64_t(size_t item)> &size,
                 const std::function<void(size_t item, unsigned thread)> &work) {
  Queue queue(items, division, size);
  std::vector<std::jthread> threads;
  for (unsigned thread = 1; thread < division.threads && thread < items; thread++)
    try {
      threads.emplace_back([&queue, &work, thread] { queue.work_off(work, thread); });
    } catch (const std::system_error &) {
      break;
    }
  queue.work_off(work, 0);
  threads.clear(); // joins
  queue.throw_failure();
}

} // namespace base
