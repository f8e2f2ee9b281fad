// Call stacks that come again: of each, every word of the stack that unwinding read. Where these words
// are the same, so is the call stack; to compare them is several times faster than to follow them.
//
// What every allocation goes through is inline.
#pragma once

#include <emmintrin.h>
#include <stdint.h>

#include "runtime/core/thread.h"

namespace assay {

// What unwinding reads: words at offsets from its first frame. Two that lie beside each other, as a frame
// pointer and a return address do, are a pair.
class StackReads {
public:
  void clear();
  void add(uint64_t offset, uint64_t value);
  void end(); // after the last
  bool complete() const { return pairs_ > 0 && !too_many_; }

  // Are all of them the same again? The stack from frame on ends at end.
  bool hold(uint64_t frame, uint64_t end) const {
    if (frame + furthest_ + 8 > end)
      return false;
    __m128i differ = _mm_setzero_si128();
    for (uint32_t i = 0; i < pairs_; i += kAtOnce)
      for (uint32_t j = i; j < i + kAtOnce; j++) {
        __m128i now = _mm_loadu_si128((const __m128i *)(frame + pair_offsets_[j]));
        differ = _mm_or_si128(differ, _mm_xor_si128(now, pair_words_[j]));
      }
    uint64_t singles_differ = 0;
    for (uint32_t i = 0; i < singles_; i++)
      singles_differ |= *(const uint64_t *)(frame + single_offsets_[i]) ^ single_words_[i];
    return !singles_differ &&
           _mm_movemask_epi8(_mm_cmpeq_epi32(differ, _mm_setzero_si128())) == 0xffff;
  }

private:
  static constexpr uint32_t kAtOnce = 8; // pairs: the first one fills up the last eight
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

// The main thread has its own, which it takes without an atomic operation; all others share theirs.
struct StackMemos {
  static constexpr unsigned kBits = 7;
  StackMemo of_main[1 << kBits], of_others[1 << kBits];
  uint32_t generation; // counts what was forgotten
};
extern constinit StackMemos stack_memos;

// The memo of stacks that begin alike (beginning_of_stack()), or null where another thread, or the code
// below a signal handler, has it. Until it is given back, nobody else has it.
inline StackMemo *take_memo(uint64_t beginning) {
  const uint64_t number = beginning >> (64 - StackMemos::kBits);
  if (thread_number() != kMainThread) {
    StackMemo &memo = stack_memos.of_others[number];
    return __atomic_test_and_set(&memo.taken, __ATOMIC_ACQUIRE) ? nullptr : &memo;
  }
  StackMemo &memo = stack_memos.of_main[number];
  if (memo.taken)
    return nullptr;
  memo.taken = true;
  __atomic_signal_fence(__ATOMIC_ACQUIRE);
  return &memo;
}

inline void give_back(StackMemo &memo) {
  __atomic_clear(&memo.taken, __ATOMIC_RELEASE); // a plain store
}

// Does it hold, and nothing was forgotten since?
inline bool is_known(const StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin,
                     uint64_t end) {
  return memo.context && memo.frame == frame && memo.type == type && memo.origin == origin &&
         memo.generation == __atomic_load_n(&stack_memos.generation, __ATOMIC_RELAXED) &&
         memo.reads.hold(frame, end);
}

// Around unwinding, which fills memo.reads.
void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin);
void end_memo(StackMemo &memo, uint32_t context);

// Code was unloaded, or contexts begin anew. In the child of a fork, where other threads may have had
// some, all are given back.
void forget_memos();
void give_back_all_memos();

} // namespace assay
