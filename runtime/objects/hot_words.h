// What the shadow's bytes cannot hold: the samples beyond 127 of words that are used all the time,
// and accesses beyond 2^31 of words whose accesses are counted.
#pragma once

#include <stdint.h>

#include "runtime/core/system/lock.h"

namespace assay::objects {

bool create_hot_words();
void reset_hot_words_in_child(); // of a fork

// Has any word in the page of this address samples here? Most have not.
bool is_hot_page(uint64_t address);

// Those that the bytes from begin to end reach.
void for_each_hot_page(uint64_t begin, uint64_t end, void (*f)(void *context, uint64_t page),
                       void *context);
template <typename F> void for_each_hot_page(uint64_t begin, uint64_t end, F f) {
  for_each_hot_page(begin, end, [](void *context, uint64_t page) { (*(F *)context)(page); }, &f);
}

// Units of the word at this address, beside what its shadow says; 0 for most. Under hot_lock where
// the word may be sampled.
uint64_t hot_units(uint64_t address);
// False if there is no room.
bool set_hot_units(uint64_t address, uint64_t units);
// One more.
bool add_hot_unit(uint64_t address);

extern constinit SpinLock hot_lock;

} // namespace assay::objects
