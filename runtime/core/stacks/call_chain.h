// The frames of a thread's stack, kept from one allocation to the next: most of them are still
// there, and only the inner ones are unwound again.
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

// What is known of a return address.
struct CallSite {
  uint64_t rule;         // how to leave the frame: LeaveRule::bits
  uint64_t function;     // where it begins
  uint64_t function_bit; // in FoldedPath::functions
  uint64_t hash;         // of the pc
};

// The folded path as far as a frame, which is its innermost one.
struct FoldedPath {
  uint64_t hash;      // the sum of what its frames add
  uint64_t functions; // a bit of each function on it, which several may share
  uint16_t depth;     // frames
  uint16_t outer;     // the frame outside the innermost one, from 1; 0: none
  uint16_t same;      // the frame whose place the innermost one took, from 1; 0: none
  uint16_t recurring; // the innermost of its frames that took another's place, from 1; 0: none
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
  uint32_t depth() const { return count_ ? path().depth : 0; }
  // The return addresses in so many of its innermost frames, the innermost first.
  void copy_pcs(uint64_t *pcs, uint32_t depth) const;
  // The outermost frames are missing, because the stack is deeper than kMax.
  bool is_cut() const { return cut_; }
  // The hash of the innermost frames of the folded path, at most so many.
  uint64_t path_hash(uint32_t depth) const;
  // Does a function recur on the path? Of a path that is not empty, as what follows.
  bool recurs() const { return path().recurring; }
  // The deepest recursion on the path.
  struct Recursion {
    uint64_t
        levels; // how often its function is there; where frames are missing, estimated from the bytes of stack
    uint32_t calls; // its frame is so many calls out of the innermost one
  };
  Recursion deepest() const;

private:
  void begin();
  void begin_on_other_stack_or_code(uint64_t end);
  const FoldedPath &path() const { return paths_[count_ - 1]; }
  bool is_unchanged(uint32_t below, uint32_t &changed) const;
  bool leads_outside(uint32_t number) const;
  bool renew_outside(uint32_t number, LeftFrame &left, uint32_t &changed);
  void renew(uint32_t number, const LeftFrame &left);
  uint32_t unchanged_base(uint64_t above) const;
  const CallSite &call_site(uint64_t pc);
  void forget_call_sites();
  FoldedPath path_to(uint32_t number) const;
  void fold();
  void set(uint32_t number, const LeftFrame &left, const CallSite &site);
  void pop_to(uint32_t count);
  void push_fresh(uint32_t count);
  uint32_t frames_outside(uint32_t count, uint64_t at) const;
  bool update_nearby(uint64_t at);
  void update_at_large(uint64_t at);
  void drop_middle(uint32_t fresh);

  uint64_t end_;        // of the stack
  uint32_t generation_; // of the code that was unwound
  uint32_t count_;
  uint32_t regular_;       // from this frame on, rbp is kept where code with frame pointers does
  uint32_t folded_;        // frames whose paths are known
  uint32_t renewed_;       // from this one on, those that were folded before,
  uint32_t kept_;          // as far as this one, are as they were
  bool has_new_functions_; // of renewed frames
  uint32_t gap_;           // frames are missing outside this one; 0: none
  bool cut_;
  LeftFrame frames_[kMax]; // the outermost first, as in what follows
  CallSite sites_[kMax];
  FoldedPath paths_[kMax];
  uint32_t levels_[kMax + 1]; // from 1: how often a frame's function is there in its recursion
  static constexpr uint32_t kCallSites = 1024;
  struct KnownSite {
    uint64_t pc;
    CallSite site;
  } known_sites_[kCallSites]; // direct-mapped
  struct Fresh {
    LeftFrame left;
    CallSite site;
  } fresh_[kMax / 2]; // while it is brought up to date: the innermost first
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
