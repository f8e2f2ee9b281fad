// Work in two halves: the first is done by several threads, the second in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace base {

// Items are added by one thread. An item's `prepare` is called on any thread, at the same time as
// those of other items; its `complete` behind that, and behind all of the items that were added before; never
// two at one time.
class OrderedWork {
public:
  // `threads` are started with the first item that is to be prepared; where none can be had, the adding thread
  // does all itself. `room` is the number of items that wait at most, besides the one that is being completed.
  OrderedWork(unsigned threads, size_t room) : thread_count_(threads), room_(room) {}
  // Finishes; what fails then is not told.
  ~OrderedWork();
  OrderedWork(const OrderedWork &) = delete;
  OrderedWork &operator=(const OrderedWork &) = delete;

  using Step = std::function<void()>;
  // Waits where there is no room, until half of it is free. Throws what a step threw; then all that waited is dropped,
  // and so is what is added from then on.
  void add(Step prepare, Step complete);
  // Of an item without a first half. Where nothing waits, it is done at once.
  void add(Step complete);
  // Until all is done. Throws what a step threw.
  void finish();

private:
  enum class State : unsigned char { waits, is_begun, is_ready };
  struct Item {
    Step prepare, complete;
    State state;
  };
  bool start_threads();
  void wait_for_room(std::unique_lock<std::mutex> &lock);
  void do_at_once(const Step &step);
  void work();
  Item *next_waiting();
  bool has_room() const { return items_.size() <= room_ / 2 || failure_; }
  bool is_finished() const { return (items_.empty() || failure_) && !is_completing_; }
  void complete_ready(std::unique_lock<std::mutex> &lock);
  void guard(std::unique_lock<std::mutex> &lock, const Step &step);
  void throw_failure() const;

  const unsigned thread_count_;
  const size_t room_;
  bool has_started_ = false;
  std::mutex mutex_;
  std::condition_variable has_work_; // for the threads, or they are to end
  std::condition_variable has_room_; // half of it, or nothing is being done any more
  std::deque<Item> items_;           // in their order; without the one that is being completed
  bool is_completing_ = false, is_over_ = false;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_; // last: they use all of this
};

} // namespace base
