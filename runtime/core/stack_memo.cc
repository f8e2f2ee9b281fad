#include "runtime/core/stack_memo.h"

namespace assay {

constinit StackMemos stack_memos = {};

void StackReads::begin(uint64_t frame) {
  too_many_ = newest_is_half_ = false;
  halves_ = used_ = pairs_ = 0;
  frame_ = frame;
  furthest_ = newest_ = 0;
}

// The first of a batch fills it up.
void StackReads::put(uint32_t number, uint64_t at, Part part, __m128i words) {
  for (uint32_t i = number; i == number || (number % kBatch == 0 && i < number + kBatch); i++) {
    offsets_[i] = (int32_t)(at - frame_);
    parts_[i] = part;
    words_[i] = words;
  }
}

void StackReads::add(uint64_t at, uint64_t value) {
  constexpr uint64_t kPage = 4096;
  const bool in_page = pairs_ && at / kPage == newest_ / kPage;
  if (at - frame_ > INT32_MAX)
    too_many_ = true;
  if (too_many_)
    return;
  if (in_page && newest_is_half_ && at == newest_ + 8) {
    put(used_ - 1, newest_, kBoth, _mm_set_epi64x((long long)value, (long long)newest_value_));
    newest_is_half_ = false;
    halves_--;
  } else {
    if (!in_page)
      used_ = pairs_;
    if (used_ == kMost) {
      too_many_ = true;
      return;
    }
    bool has_next = at % kPage <= kPage - 16; // in its page
    put(used_, has_next ? at : at - 8, has_next ? kLow : kHigh, _mm_set1_epi64x((long long)value));
    pairs_ = (used_++ / kBatch + 1) * kBatch;
    newest_is_half_ = true;
    halves_++;
  }
  newest_ = at;
  newest_value_ = value;
  furthest_ = furthest_ < at ? at : furthest_;
}

void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin) {
  memo.generation = __atomic_load_n(&stack_memos.generation, __ATOMIC_RELAXED);
  memo.context = 0; // until it is complete
  memo.type = type;
  memo.origin = origin;
  memo.reads.begin(frame);
}

void end_memo(StackMemo &memo, uint32_t context) {
  memo.context = memo.reads.complete() ? context : 0;
}

void forget_memos() {
  __atomic_fetch_add(&stack_memos.generation, 1, __ATOMIC_RELAXED);
}

void give_back_all_memos() {
  auto give_back_taken = [](auto &memos) {
    for (StackMemo &memo : memos)
      if (memo.taken) // the pages of the others stay as they are
        give_back(memo);
  };
  give_back_taken(stack_memos.of_main);
  give_back_taken(stack_memos.of_others);
}

} // namespace assay
