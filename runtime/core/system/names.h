// Names that a program gives things (pools, events), once each, copied.
#pragma once

#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/message.h"

namespace assay {

template <size_t kLimit> class Names {
public:
  // The number of a name under a key, from 1; 0 when there is no room.
  uint32_t number_of(uint32_t key, const char *name) {
    size_t size = length_of(name);
    Locked locked(lock_);
    for (uint32_t i = 1; i <= count_; i++)
      if (names_[i].key == key && names_[i].size == size && equal(names_[i].text, name, size))
        return i;
    if (count_ + 1 == kLimit)
      return 0;
    char *copy = (char *)arena_allocate(size + 1);
    if (!copy)
      return 0;
    __builtin_memcpy(copy, name, size + 1);
    names_[count_ + 1] = {key, (uint32_t)size, copy};
    __atomic_store_n(&count_, count_ + 1, __ATOMIC_RELEASE);
    return count_;
  }
  uint32_t count() const { return __atomic_load_n(&count_, __ATOMIC_ACQUIRE); }
  uint32_t key(uint32_t number) const { return names_[number].key; }
  const char *text(uint32_t number) const { return names_[number].text; }
  uint32_t size(uint32_t number) const { return names_[number].size; }
  void reset_in_child() { lock_.reset(); }

private:
  struct Name {
    uint32_t key, size;
    const char *text;
  };
  SpinLock lock_;
  uint32_t count_ = 0;
  Name names_[kLimit] = {};
};

} // namespace assay
