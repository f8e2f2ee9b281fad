// Memory for the runtime itself: from mmap, never from malloc; never given back, never in core
// dumps.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay {

// A span of address space that costs memory only where it is touched; zero-filled. Null when the
// kernel refuses (RLIMIT_AS, overcommit); `at` 0 lets the kernel choose, else exactly there or
// null.
void *reserve(size_t bytes, uintptr_t at = 0);

// Raises the limits of memory that the program set for itself by so many bytes, which will be ours,
// or lowers them again. Null until the program sets one (core/process/memory_limits.cc).
extern constinit void (*raise_memory_limits)(int64_t bytes);

// Bytes of address space that were reserved; they count against RLIMIT_AS and RLIMIT_DATA, touched or not.
uint64_t reserved_bytes();

// Does something that was reserved lie in [begin, end)? Says no of what came after the first 512 times.
bool is_reserved(uintptr_t begin, uintptr_t end);

// 16-byte aligned, zero-filled; null when there is no memory left (counted as loss no_memory).
// Thread-safe; may be called before init and in signal handlers (ReentrancyGuard keeps them out of each
// other).
void *arena_allocate(size_t bytes);

// Ends the reservation of a whole span.
void give_back(void *span, size_t bytes);

// Gives the memory of a reserved span back: it reads as zeros again.
void empty_span(void *span, size_t bytes);

// An array that grows without moving, indexed by small integers that are handed out in order.
// Elements start as zeros. Lock-free: readers may run beside the one that touches a new element.
template <typename T, size_t kLimit> class GrowingArray {
public:
  // Reserves the address space; false when the kernel refuses.
  bool create() {
    elements_ = static_cast<T *>(reserve(sizeof(T) * kLimit));
    return elements_ != nullptr;
  }
  // Back to zeros. Nobody else may be using it.
  void clear() { empty_span(elements_, sizeof(T) * kLimit); }
  bool exists() const { return elements_ != nullptr; }
  T &operator[](size_t i) { return elements_[i < kLimit ? i : 0]; }
  static constexpr size_t limit() { return kLimit; }

private:
  T *elements_ = nullptr;
};

} // namespace assay
