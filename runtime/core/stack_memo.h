// Call stacks that come again: of each, every word of the stack that unwinding read. Where these words
// are the same, so is the call stack; to compare them is several times faster than to follow them.
#pragma once

#include <emmintrin.h>
#include <stdint.h>

namespace assay {

// What unwinding reads: words at offsets from its first frame. Two that lie beside each other, as a frame
// pointer and a return address do, are a pair.
class StackReads {
public:
  void clear();
  void add(uint64_t offset, uint64_t value);
  bool complete() const { return pairs_ + singles_ > 0 && !too_many_; }
  // Are all of them the same again? The stack from frame on ends at end.
  bool hold(uint64_t frame, uint64_t end) const;

private:
  static constexpr uint32_t kMostPairs = 40, kMostSingles = 24;
  bool too_many_;
  uint32_t pairs_, singles_, furthest_;
  uint32_t pair_offsets_[kMostPairs], single_offsets_[kMostSingles];
  __m128i pair_words_[kMostPairs];
  uint64_t single_words_[kMostSingles];
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
