// The frames of a thread's stack, kept from one allocation to the next: most of them are still there, and only the inner
// ones are unwound again.
//
// Recursion is folded: where a function is on the stack again, its inner frame takes the place of the outer one and of
// all that lies between. What is left is a path in which each function stands once, and each call of which was really
// made. How often the function was there is kept as its levels.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/stacks/unwind.h"

namespace assay {

constexpr uint32_t kMaxDepth = 256; // frames of a context

struct ChainFrame {
  LeftFrame left;    // left.pc is a return address in this frame's function
  uint64_t function; // where the function begins
  uint64_t hash;     // of the folded path from the outermost frame to this one
  uint16_t outer;    // next frame of that path; kNoFrame at its end
  uint16_t depth;    // frames of that path
  uint32_t levels;   // how often the function is there in its recursion
  uint16_t deepest;  // the frame of that path with the most levels
  // What this frame took the place of, for when it is left: of the path at this depth, and of the newest frame of
  // functions with this hash.
  uint16_t replaced_on_path;
  uint16_t replaced_newest;
};
static_assert(sizeof(ChainFrame) == 64, "a cache line");
constexpr uint16_t kNoFrame = 0xffff;

class CallChain {
public:
  static constexpr uint32_t kMax = 2048; // frames
  static_assert(kMax < kNoFrame);

  // Unwinds from the frame of an interposed function, as far as the chain does not know the way. Reads only the
  // stack that the thread is running on. Inside a ReentrancyGuard section.
  void update(const void *frame);

  // Forgets all frames, also those of a chain that was left in the middle of an update.
  void clear();

  bool is_empty() const { return count_ == 0; }
  const ChainFrame &innermost() const { return frames_[count_ - 1]; }
  const ChainFrame &frame(uint32_t number) const { return frames_[number]; }
  // The outermost frames are missing, because the stack is deeper than kMax.
  bool is_cut() const { return cut_; }
  // The hash of the innermost frames of the folded path, at most so many.
  uint64_t path_hash(uint32_t depth) const;
  // Levels of the deepest recursion on the path; where frames are missing, estimated from the bytes of stack.
  uint64_t levels() const;

private:
  void begin(uint64_t end);
  uint16_t find_on_path(uint64_t function) const;
  void pop_to(uint32_t count);
  bool is_unchanged(uint32_t below, uint32_t &changed) const;
  uint32_t unchanged_base(uint64_t above) const;
  void push(const LeftFrame &left, uint64_t function);
  void push_fresh(uint32_t count);
  void drop_middle(uint32_t fresh);

  uint64_t end_;        // of the stack
  uint32_t generation_; // of the code that was unwound
  uint32_t count_;
  uint32_t gap_; // frames are missing outside this one; 0: none
  bool cut_;
  ChainFrame frames_[kMax]; // the outermost first
  // Is a function on the innermost frame's path, and where? One load says so, mostly.
  static constexpr uint32_t kSlots = 2048;
  uint16_t path_[kMax + 1]; // by depth: the frame of that path
  uint16_t newest_[kSlots]; // by hash of the function: the newest frame, from 1; 0: none
  struct Fresh {
    LeftFrame left;
    uint64_t function;
  } fresh_[kMax]; // while it is brought up to date: the innermost first
};

// A chain for the calling thread, for as long as this object lives. There are a few dozen: the main thread has its
// own, the others share theirs, each by preference the same.
class TakenChain {
public:
  TakenChain();
  ~TakenChain();
  TakenChain(const TakenChain &) = delete;
  TakenChain &operator=(const TakenChain &) = delete;
  CallChain *operator->() { return chain_; }
  CallChain &operator*() { return *chain_; }

private:
  uint32_t number_;
  CallChain *chain_;
};

bool create_call_chains();
// Code came or was unloaded: what was unwound may mean something else now.
void invalidate_call_chains();

} // namespace assay
