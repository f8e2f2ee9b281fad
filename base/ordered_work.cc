// Whoever has prepared the first item completes it, and those behind it that are ready. So nothing
// waits for the adding thread, which may be busy elsewhere.

#include "base/ordered_work.h"

#include <csignal>
#include <new>
#include <system_error>
#include <utility>

namespace base {

OrderedWork::~OrderedWork() {
  try {
    finish();
  } catch (...) { // NOLINT(bugprone-empty-catch): who wanted to know has called finish()
  }
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  has_work_.notify_all();
}

// Signals are for the threads that there were: a handler may not expect another one.
bool OrderedWork::start_threads() {
  if (std::exchange(has_started_, true))
    return !threads_.empty();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (threads_.size() < thread_count_)
      threads_.emplace_back([this] { work(); });
  } catch (const std::system_error &) { // those that there are do all
  } catch (const std::bad_alloc &) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return !threads_.empty();
}

void OrderedWork::add(Step prepare, Step complete) {
  if (!start_threads()) {
    throw_failure();
    do_at_once(prepare);
    do_at_once(complete);
    return;
  }
  std::unique_lock lock(mutex_);
  wait_for_room(lock);
  items_.push_back({std::move(prepare), std::move(complete), State::waits});
  has_work_.notify_one();
}

void OrderedWork::add(Step complete) {
  std::unique_lock lock(mutex_);
  wait_for_room(lock);
  if (!items_.empty() || is_completing_) {
    items_.push_back({{}, std::move(complete), State::is_ready});
    return;
  }
  lock.unlock(); // nobody else adds
  do_at_once(complete);
}

void OrderedWork::wait_for_room(std::unique_lock<std::mutex> &lock) {
  // Half of it: who wakes for each single item sleeps and wakes all the time.
  if (items_.size() >= room_)
    has_room_.wait(lock, [&] { return has_room(); });
  throw_failure();
}

// In the adding thread, while no other has anything to do.
void OrderedWork::do_at_once(const Step &step) {
  try {
    step();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    throw;
  }
}

void OrderedWork::finish() {
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [&] { return is_finished(); });
  throw_failure();
}

void OrderedWork::throw_failure() const {
  if (failure_)
    std::rethrow_exception(failure_);
}

OrderedWork::Item *OrderedWork::next_waiting() {
  for (Item &item : items_)
    if (item.state == State::waits)
      return &item;
  return nullptr;
}

void OrderedWork::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    Item *item = nullptr;
    has_work_.wait(lock, [&] { return is_over_ || (!failure_ && (item = next_waiting())); });
    if (is_over_)
      return;
    item->state = State::is_begun; // it stays where it is: a deque moves none
    guard(lock, item->prepare);
    item->state = State::is_ready;
    complete_ready(lock);
  }
}

void OrderedWork::complete_ready(std::unique_lock<std::mutex> &lock) {
  if (is_completing_) // who is at it goes on with these
    return;
  is_completing_ = true;
  while (!failure_ && !items_.empty() && items_.front().state == State::is_ready) {
    const Step complete = std::move(items_.front().complete);
    items_.pop_front();
    if (has_room())
      has_room_.notify_one();
    guard(lock, complete);
  }
  is_completing_ = false;
  if (is_finished())
    has_room_.notify_one();
}

void OrderedWork::guard(std::unique_lock<std::mutex> &lock, const Step &step) {
  lock.unlock();
  std::exception_ptr failure;
  try {
    step();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure && !failure_)
    failure_ = failure;
}

} // namespace base
