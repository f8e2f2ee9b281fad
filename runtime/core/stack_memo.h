// Call stacks that come again: of each, every word of the stack that unwinding read. Where these words
// are the same, so is the call stack; to compare them is several times faster than to follow them.
#pragma once

#include <stdint.h>

namespace assay {

// What unwinding reads: words at offsets from its first frame, in the order in which it reads them. Two that
// lie beside each other, as a frame pointer and a return address do, are one entry.
class StackReads {
public:
  void clear() { count_ = furthest_ = 0; }
  void add(uint64_t offset, uint64_t value);
  bool complete() const { return count_ > 0 && count_ <= kMost; }
  // Are all of them the same again? The stack from frame on ends at end.
  bool hold(uint64_t frame, uint64_t end) const;

private:
  struct Entry {
    uint32_t offset;
    bool two;
    uint64_t words[2];
  };
  static constexpr uint32_t kMost = 48;
  uint32_t count_ = 0, furthest_ = 0;
  Entry entries_[kMost];
};

struct StackMemo {
  bool taken;
  uint32_t generation;
  uint64_t frame;
  uint32_t type, origin;
  uint32_t context; // 0: of no use
  StackReads reads;
};

// The memo of stacks that begin alike (beginning_of_stack()), or null where another thread, or the code
// below a signal handler, has it. Until it is given back, nobody else has it.
StackMemo *take_memo(uint64_t beginning);
void give_back(StackMemo &memo);

// Does it hold, and nothing was forgotten since?
bool is_known(const StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin, uint64_t end);

// Around unwinding, which fills memo.reads.
void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin);
void end_memo(StackMemo &memo, uint32_t context);

// Code was unloaded, or contexts begin anew. In the child of a fork, where other threads may have had
// some, all are given back.
void forget_memos();
void give_back_all_memos();

} // namespace assay
