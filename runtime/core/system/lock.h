// A spin lock for short critical sections. It spins a little, then yields: a holder may have been
// preempted. Then it sleeps: a few sections are long, such as rewriting the profile. May be taken in
// signal handlers only where the holder cannot be interrupted by one that takes it too: that is what
// ReentrancyGuard (core/system/thread.h) is for.
#pragma once

#include "runtime/core/system/syscall.h"

namespace assay {

class SpinLock {
public:
  void lock() {
    for (int spins = 0; __atomic_exchange_n(&held_, 1, __ATOMIC_ACQUIRE); spins++)
      while (__atomic_load_n(&held_, __ATOMIC_RELAXED))
        wait(++spins);
  }
  void unlock() { __atomic_store_n(&held_, 0, __ATOMIC_RELEASE); }
  // For the child of a fork: the holder may not exist there.
  void reset() { held_ = 0; }

private:
  static void wait(int spins) {
    constexpr int kPauses = 100, kYields = 100;
    constexpr uint64_t kSleepNs = 50'000;
    if (spins < kPauses)
      __builtin_ia32_pause();
    else if (spins < kPauses + kYields)
      sys::yield();
    else
      sys::sleep_ns(kSleepNs);
  }
  uint8_t held_ = 0;
};

class Locked {
public:
  explicit Locked(SpinLock &lock) : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

private:
  SpinLock &lock_;
};

} // namespace assay
