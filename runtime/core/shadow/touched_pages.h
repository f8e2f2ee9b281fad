// Which pages of a range of our own memory hold anything: so that looking at a shadow costs what was
// touched, not what was reserved.
#pragma once

#include <stdint.h>

namespace assay {

// Calls f(context, begin, end) for runs of pages of [begin, end) that are in memory or swapped out,
// in order. Where the kernel does not tell at all, not once (loss untold_pages). Page-aligned; from any thread,
// inside a ReentrancyGuard section.
void for_each_touched(uint64_t begin, uint64_t end, void (*f)(void *context, uint64_t, uint64_t),
                      void *context);

template <typename F> void for_each_touched(uint64_t begin, uint64_t end, F f) {
  for_each_touched(
      begin, end, [](void *context, uint64_t from, uint64_t to) { (*(F *)context)(from, to); }, &f);
}

} // namespace assay
