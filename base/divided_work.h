// Work that several threads share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace base {

// The cpus that this process may run on, 1 at least.
unsigned usable_cpus();

struct Division {
  unsigned threads = 1; // the caller's included
  // What items may take at one time, in a unit of the caller's. One that takes more has all of it for itself.
  uint64_t room = UINT64_MAX;
  // Items that take more are the caller's thread's: memory that is given back is used again by the same thread only.
  uint64_t share = UINT64_MAX;
};

// Calls work(item, thread) once for each item < items; they are begun in their order. `thread` is a
// number < division.threads, the caller's is 0; no two calls at one time have the same one.
// size(item) is what an item takes of the room. What a call throws is thrown here, once all that
// were begun have ended; no more are begun then.
void divide_work(size_t items, Division division, const std::function<uint64_t(size_t item)> &size,
                 const std::function<void(size_t item, unsigned thread)> &work);

} // namespace base
