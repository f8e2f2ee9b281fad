// One step of unwinding: from a frame to its caller, by frame pointers where code keeps them, by call frame
// information elsewhere. Whole call paths: core/stacks/call_chain.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/system/thread.h"

namespace assay {

// How to leave a frame whose code is at a pc.
struct LeaveRule {
  // bit 0       there is a rule        bits 16-31  where rbp was saved, from the frame address
  // bit 1       by frame pointer       bits 32-63  offset of the frame address
  // bit 2       from rbp, else rsp
  // bit 3       rbp was saved
  uint64_t bits;
  uint64_t function; // where the pc's function begins; the pc itself where that is not known
};
enum : uint64_t { kRuleKnown = 1, kFramePointer = 2, kFromRbp = 4, kRbpSaved = 8 };

// The rule at a return address, cached. Inside a ReentrancyGuard section.
LeaveRule leave_rule_at(uint64_t pc);

// A frame that was left.
struct LeftFrame {
  uint64_t at; // the caller's stack pointer before the call; the return address lies 8 bytes below
  uint64_t
      saved_at; // where the caller's rbp was saved; 0 if it was not, and stayed in the register
  uint64_t rbp,
      pc; // the caller's, and the return address: as they lie where code keeps frame pointers
};

// Leaves the frame that rsp and rbp belong to. False where the chain ends: the rule is not known, or leads out of
// the stack, which ends at `end`, or inwards. Reads only between rsp and end.
inline bool leave_frame(uint64_t rule, uint64_t rsp, uint64_t rbp, uint64_t end, LeftFrame &out) {
  const uint64_t last = end - 16;
  if (rule & kFramePointer) {
    if (rbp < rsp || rbp > last || rbp % 8)
      return false;
    out.at = rbp + 16;
    out.saved_at = rbp;
    out.rbp = *(const uint64_t *)rbp;
  } else {
    if (!(rule & kRuleKnown))
      return false;
    out.at = (rule & kFromRbp ? rbp : rsp) + (uint64_t)(int64_t)(int32_t)(rule >> 32);
    if (out.at <= rsp || out.at > last + 16 || out.at % 8)
      return false;
    out.saved_at = 0;
    out.rbp = rbp;
    if (rule & kRbpSaved) {
      out.saved_at = out.at + (uint64_t)(int64_t)(int16_t)(rule >> 16);
      if (out.saved_at < rsp || out.saved_at > last + 8)
        return false;
      out.rbp = *(const uint64_t *)out.saved_at;
    }
  }
  out.pc = *(const uint64_t *)(out.at - 8);
  return out.pc >= 4096;
}

// One past the stack that the address is on, which is the thread's; 0 if that cannot be told. It is asked for
// where the address is not on the stack that the thread is known to have.
uint64_t find_end_of_stack(uint64_t address);
inline uint64_t end_of_stack(uint64_t address) {
  if (address >= this_thread.stack_low && address < this_thread.stack_high)
    return this_thread.stack_high;
  return find_end_of_stack(address);
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

// After a module came or was unloaded: what was learnt of its code is forgotten.
void invalidate_leave_rules();

} // namespace assay
