// What this thread has worked. Where hundreds of threads run beside it, it has a hundredth of the time that goes by.
#pragma once

#include <chrono>
#include <ctime>

namespace values {

inline std::chrono::nanoseconds thread_cpu_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

} // namespace values
