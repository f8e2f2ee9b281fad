#include "runtime/core/stack_memo.h"

namespace assay {

constinit StackMemos stack_memos = {};

void StackReads::clear() {
  pairs_ = singles_ = furthest_ = 0;
  too_many_ = false;
}

void StackReads::add(uint64_t offset, uint64_t value) {
  if (offset > UINT32_MAX || singles_ == kMostSingles || pairs_ == kMostPairs)
    too_many_ = true;
  if (too_many_)
    return;
  if (singles_ && offset == single_offsets_[singles_ - 1] + 8ULL) {
    singles_--;
    pair_offsets_[pairs_] = single_offsets_[singles_];
    pair_words_[pairs_++] = _mm_set_epi64x((long long)value, (long long)single_words_[singles_]);
  } else {
    single_offsets_[singles_] = (uint32_t)offset;
    single_words_[singles_++] = value;
  }
  furthest_ = furthest_ < (uint32_t)offset ? (uint32_t)offset : furthest_;
}

void StackReads::end() {
  if (pairs_ == 0) // a return address alone
    too_many_ = true;
  for (; !too_many_ && pairs_ % kAtOnce; pairs_++) {
    pair_offsets_[pairs_] = pair_offsets_[0];
    pair_words_[pairs_] = pair_words_[0];
  }
}

void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin) {
  memo.generation = __atomic_load_n(&stack_memos.generation, __ATOMIC_RELAXED);
  memo.frame = frame;
  memo.type = type;
  memo.origin = origin;
  memo.reads.clear();
}

void end_memo(StackMemo &memo, uint32_t context) {
  memo.reads.end();
  memo.context = memo.reads.complete() ? context : 0;
}

void forget_memos() {
  __atomic_fetch_add(&stack_memos.generation, 1, __ATOMIC_RELAXED);
}

void give_back_all_memos() {
  for (StackMemo &memo : stack_memos.of_main)
    give_back(memo);
  for (StackMemo &memo : stack_memos.of_others)
    give_back(memo);
}

} // namespace assay
