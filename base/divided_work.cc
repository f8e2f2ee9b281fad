// Threads take the next item when they are done with one: items differ a thousandfold in size. Where a thread cannot be had, those that
// there are do all.

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
  Queue(size_t items, uint64_t room, const std::function<uint64_t(size_t)> &size)
      : items_(items), room_(room), size_(size) {}

  // Until none is left.
  void work_off(const std::function<void(size_t, unsigned)> &work, unsigned thread) {
    std::unique_lock lock(mutex_);
    while (next_ < items_ && !failure_) {
      const size_t item = next_++;
      const uint64_t size = std::min(size_(item), room_);
      changed_.wait(lock, [&] { return failure_ || (item == turn_ && size <= room_ - taken_); });
      if (failure_)
        return;
      turn_++;
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
  const size_t items_;
  const uint64_t room_;
  const std::function<uint64_t(size_t)> &size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0, turn_ = 0; // to be taken; to be begun
  uint64_t taken_ = 0;         // of the room
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
  Queue queue(items, division.room, size);
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
