// The frames of a thread's stack, kept from one allocation to the next: most of them are still
// there, and only the inner ones are unwound again.
//
// Recursion is folded: where a function is on the stack again, its inner frame takes the place of the outer one and of
// all that lies between. What is left is a path in which each function stands once, and each call of which was really
// made. How often the function was there is kept as its levels.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/ids.h"
#include "runtime/core/stacks/unwind.h"

namespace assay {

constexpr uint32_t kMaxDepth = 256; // frames of a context

struct ChainFrame {
  LeftFrame left; // left.pc is a return address in this frame's function
  uint64_t rule;  // how to leave this frame: LeaveRule::bits
  uint64_t hash;  // of the pc
};

struct PathFrame {
  uint64_t hash;    // what it adds to the path's
  uint32_t levels;  // how often the function is there in its recursion
  uint16_t frame;   // the innermost of these
  uint16_t deepest; // on the path as far as here: the one with the most levels
};

// What a context was found by, but for its path.
struct ContextKey {
  TypeId type;
  OriginId origin;
  uint32_t generation; // of the depot
  bool operator==(const ContextKey &) const = default;
};

class CallChain {
public:
  static constexpr uint32_t kMax = 2048; // frames
  static_assert(kMax < UINT16_MAX);

  // Unwinds from the frame of an interposed function, as far as the chain does not know the way. Reads only the
  // stack that the thread is running on. Inside a ReentrancyGuard section.
  void update(const void *frame);

  // Forgets all frames, also those of a chain that was left in the middle of an update.
  void clear();

  // Frames of the folded path.
  uint32_t depth() const { return path_count_; }
  // The return address in its frame so many calls out of the innermost one.
  uint64_t pc(uint32_t calls) const {
    return frames_[path_[path_count_ - 1 - calls].frame].left.pc;
  }
  // The outermost frames are missing, because the stack is deeper than kMax.
  bool is_cut() const { return cut_; }
  // The hash of the innermost frames of the folded path, at most so many.
  uint64_t path_hash(uint32_t depth) const;
  // Does a function recur on the path? Of a path that is not empty, as what follows.
  bool recurs() const { return deepest().levels > 1; }
  // Levels of the deepest recursion on the path; where frames are missing, estimated from the bytes of stack.
  uint64_t levels() const;
  // The context that was kept last, if the path is still as it was then.
  ContextId kept(const ContextKey &key) const {
    return kept_.key == key ? kept_.context : kNoContext;
  }
  void keep(const ContextKey &key, ContextId context) { kept_ = {key, context}; }
  // The frame of that recursion is so many calls out of the innermost one.
  uint32_t calls_to_deepest() const { return path_count_ - 1 - path_[path_count_ - 1].deepest; }

private:
  void begin();
  void begin_on_other_stack_or_code(uint64_t end);
  const PathFrame &deepest() const { return path_[path_[path_count_ - 1].deepest]; }
  bool is_unchanged(uint32_t below, uint32_t &changed) const;
  bool leads_outside(uint32_t number) const;
  bool renew_outside(uint32_t number, LeftFrame &left, uint32_t &right);
  void renew(uint32_t number, const LeftFrame &left);
  uint32_t unchanged_base(uint64_t above) const;
  struct CallSite;
  const CallSite &call_site(uint64_t pc);
  uint16_t number_of(uint64_t function);
  void forget_functions();
  bool is_on_path(uint32_t number) const;
  bool move_alone(uint32_t number, uint16_t function);
  void move(uint32_t number, uint16_t function);
  void cut_path_to(uint32_t count);
  void cut_path_at(uint32_t number);
  void cut_path_of(uint16_t same);
  void extend_path();
  void note_if_odd(uint32_t end, const LeftFrame &left);
  void push(const LeftFrame &left, uint64_t rule, uint16_t function);
  void pop_to(uint32_t count);
  void push_fresh(uint32_t count);
  uint32_t frames_outside(uint32_t count, uint64_t at) const;
  bool update_nearby(uint64_t at);
  void update_at_large(uint64_t at);
  void drop_middle(uint32_t fresh);

  uint64_t end_;        // of the stack
  uint32_t generation_; // of the code that was unwound
  uint32_t count_;
  uint32_t regular_; // from this one on, frames keep rbp where code with frame pointers does
  uint32_t path_count_;
  uint64_t path_hash_; // of the whole path: the sum of what its frames add
  uint32_t gap_;       // frames are missing outside this one; 0: none
  bool cut_;
  struct {
    ContextKey key;
    ContextId context;
  } kept_;                  // kNoContext: the path is another
  ChainFrame frames_[kMax]; // the outermost first
  // Of each frame, apart, because many are gone through at once, and so perhaps some behind the last:
  static constexpr uint32_t kAtOnce = 8;
  uint16_t function_[kMax + kAtOnce]; // number of the function, in functions_
  uint16_t nth_[kMax + kAtOnce];      // of this function's frames, counted from the outermost
  uint16_t outer_same_[kMax];         // the next frame outwards of this function, from 1; 0: none
  uint16_t on_path_[kMax];            // where it stands on the path, if it does
  PathFrame path_[kMax];              // the outermost first
  // The functions that were met, by open addressing.
  struct Function {
    uint64_t begins; // 0: free
    uint16_t newest; // its innermost frame, from 1; 0: none
  };
  static constexpr uint32_t kFunctions = 2 * kMax;
  // Before an update, which meets at most kMax / 2 + kMax others, and one place must stay free.
  static constexpr uint32_t kMaxKnown = kFunctions - kMax - kMax / 2 - 1;
  uint32_t known_functions_;
  Function functions_[kFunctions];
  // What was learnt of return addresses, direct-mapped: LeaveRule::bits, and the function's number.
  struct CallSite {
    uint64_t pc, rule;
    uint16_t function;
  };
  static constexpr uint32_t kCallSites = 1024;
  CallSite call_sites_[kCallSites];
  struct Fresh {
    LeftFrame left;
    uint64_t rule;
    uint16_t function;
  } fresh_[kMax / 2]; // while it is brought up to date: the innermost first
};

// Code came or was unloaded: what was unwound may mean something else now.
void invalidate_call_chains();

} // namespace assay
