// Call stacks: by frame pointers where code keeps them, by call frame information elsewhere.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/stack_memo.h"
#include "runtime/core/thread.h"

namespace assay {

constexpr size_t kMaxDepth = 256;
constexpr int kHashedFrames = 3;
constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15ULL;

struct Stack {
  uint32_t depth = 0;
  bool cut = false;  // outer frames are missing because of the limit
  uint64_t hash = 0; // of the pcs
  uint64_t pcs[kMaxDepth];
};

// Return addresses from the frame (of the interposed function) outwards; innermost first, at most
// limit; of pcs that come again, in a recursion, only the innermost if folded. Reads only the stack that
// the thread is running on. Inside a Busy section.
// reads, which may be null, is told of every word of the stack that was read.
void unwind(const void *frame, size_t limit, bool folded, Stack &out, StackReads *reads = nullptr);

// One past the stack that the address is on, which is the thread's; 0 if that cannot be told. It is asked for
// where the address is not on the stack that the thread is known to have.
uint64_t find_end_of_stack(uint64_t address);
inline uint64_t end_of_stack(uint64_t address) {
  if (address >= this_thread.stack_low && address < this_thread.stack_high)
    return this_thread.stack_high;
  return find_end_of_stack(address);
}

// A hash of the frame and of its innermost callers, as far as they keep frame pointers; end: of the stack.
uint64_t hash_of_frames(const void *frame, uint64_t end);

// The same or another one, always the same of one stack. Within the page of the frame, rbp is followed
// whatever it is: there it can be read, and the worst is a worse hash.
inline uint64_t beginning_of_stack(const void *frame, uint64_t end) {
  const uint64_t page = (uint64_t)frame / 4096;
  uint64_t rbp = (uint64_t)frame, hash = rbp;
  for (int i = 0; i < kHashedFrames; i++) {
    if (rbp / 4096 != page || rbp % 4096 > 4096 - 16)
      return hash_of_frames(frame, end);
    const uint64_t *words = (const uint64_t *)rbp;
    hash = (hash ^ words[1]) * kHashFactor;
    rbp = words[0];
  }
  return hash;
}

// The stacks of threads that have allocated; the main thread's is the first. A stack that several
// threads used, one after the other, is one.
struct StackBounds {
  uint64_t low, high;
  uint32_t thread; // number of the first one that had it
};
void note_own_stack(); // of a thread that has not allocated yet
uint32_t known_stacks();
StackBounds known_stack(uint32_t number);

// In the child of a fork.
void forget_stacks_holder();

// After a module was unloaded: what was learnt of its code is forgotten.
void forget_frame_rules();

} // namespace assay
