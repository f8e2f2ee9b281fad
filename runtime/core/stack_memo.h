// Call stacks that come again: of each, every word of the stack that unwinding read. Where these words
// are the same, so is the call stack; to compare them is several times faster than to follow them.
//
// What every allocation goes through is inline.
#pragma once

#include <emmintrin.h>
#include <stdint.h>

#include "runtime/core/thread.h"

namespace assay {

// What unwinding reads: words of a stack from one frame on. Two that lie beside each other, as a frame
// pointer and a return address do, are a pair; of another pair only the half counts that was read.
class StackReads {
public:
  enum Part : uint8_t { kBoth, kLow, kHigh };
  static constexpr uint32_t kBatch = 4, kNear = 6, kFar = 10;

  // Pairs that are compared at once.
  struct Batch {
    int32_t offsets[kBatch]; // from the frame
    Part parts[kBatch];
    __m128i words[kBatch];
  };

  // far: kFar batches, for stacks that kNear are too few for.
  void begin(uint64_t frame, Batch *far);
  void add(uint64_t at, uint64_t value);
  bool complete() const { return batches_ > 0 && !too_many_; }

  // Are all of them the same again? The stack from frame on ends at end. As long as all are the same, the
  // first pair of the next batch is one that unwinding would read, and so can be read; those that are
  // compared together with it lie in its page.
  bool hold(uint64_t end) const {
    if (furthest_ + 8 > end)
      return false;
    return halves_ ? hold_where<true>() : hold_where<false>();
  }
  uint64_t frame() const { return frame_; }

private:
  static __m128i mask_of(Part part) {
    return _mm_set_epi64x(part == kLow ? 0 : -1, part == kHigh ? 0 : -1);
  }

  template <bool halves> bool holds(const Batch &batch) const {
    __m128i differ = _mm_setzero_si128();
    for (uint32_t i = 0; i < kBatch; i++) {
      __m128i now =
          _mm_loadu_si128((const __m128i *)(frame_ + (uint64_t)(int64_t)batch.offsets[i]));
      __m128i changed = _mm_xor_si128(now, batch.words[i]);
      differ =
          _mm_or_si128(differ, halves ? _mm_and_si128(changed, mask_of(batch.parts[i])) : changed);
    }
    return _mm_movemask_epi8(_mm_cmpeq_epi32(differ, _mm_setzero_si128())) == 0xffff;
  }
  template <bool halves> bool hold_where() const {
    for (uint32_t i = 0; i < batches_; i++)
      if (!holds<halves>(i < kNear ? near_[i] : far_[i - kNear]))
        return false;
    return true;
  }
  Batch &batch(uint32_t number) { return number < kNear ? near_[number] : far_[number - kNear]; }
  void put(uint32_t number, uint64_t at, Part part, __m128i words);

  bool too_many_, newest_is_half_;
  uint32_t halves_;                    // pairs of which half was read
  uint32_t used_, batches_;            // pairs that were added
  uint64_t frame_, furthest_, newest_; // addresses: of the first frame, and of words
  uint64_t newest_value_;
  Batch *far_;
  Batch near_[kNear];
};

struct StackMemo {
  bool taken;
  uint32_t generation;
  uint32_t type, origin;
  uint32_t context; // 0: of no use
  StackReads reads;
};

// They are handed out one after the other, so that a program with few stacks touches few pages of them.
class MemoPool {
public:
  static constexpr unsigned kIndexBits = 9, kBits = 6;

  StackMemo &memo_of(uint64_t beginning) {
    uint8_t number = __atomic_load_n(&index_[beginning >> (64 - kIndexBits)], __ATOMIC_RELAXED);
    return memos_[(number ? number : first_time(beginning)) - 1];
  }
  bool owns(const StackMemo &memo) const {
    return &memo >= memos_ && &memo < memos_ + (1 << kBits);
  }
  StackReads::Batch *far_of(const StackMemo &memo) { return far_[&memo - memos_]; }
  void give_back_all();

private:
  uint8_t first_time(uint64_t beginning);
  uint32_t used_;
  uint8_t index_[1 << kIndexBits]; // numbers of memos, from 1
  StackMemo memos_[1 << kBits];
  StackReads::Batch far_[1 << kBits][StackReads::kFar];
};

// The main thread has its own, which it takes without an atomic operation; all others share theirs.
struct StackMemos {
  MemoPool of_main, of_others;
  uint32_t generation; // counts what was forgotten
};
extern constinit StackMemos stack_memos;

// The memo of stacks that begin alike (beginning_of_stack()), or null where another thread, or the code
// below a signal handler, has it. Until it is given back, nobody else has it.
inline StackMemo *take_memo(uint64_t beginning) {
  if (thread_number() != kMainThread) {
    StackMemo &memo = stack_memos.of_others.memo_of(beginning);
    return __atomic_test_and_set(&memo.taken, __ATOMIC_ACQUIRE) ? nullptr : &memo;
  }
  StackMemo &memo = stack_memos.of_main.memo_of(beginning);
  if (memo.taken)
    return nullptr;
  memo.taken = true;
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  return &memo;
}

inline void give_back(StackMemo &memo) {
  __atomic_clear(&memo.taken, __ATOMIC_RELEASE); // a plain store
}

// Does it hold, and nothing was forgotten since?
inline bool is_known(const StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin,
                     uint64_t end) {
  return memo.context && memo.reads.frame() == frame && memo.type == type &&
         memo.origin == origin &&
         memo.generation == __atomic_load_n(&stack_memos.generation, __ATOMIC_RELAXED) &&
         memo.reads.hold(end);
}

// Around unwinding, which fills memo.reads.
void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin);
void end_memo(StackMemo &memo, uint32_t context);

// Code was unloaded, or contexts begin anew. In the child of a fork, where other threads may have had
// some, all are given back.
void forget_memos();
void give_back_all_memos();

} // namespace assay
