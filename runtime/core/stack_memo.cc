#include "runtime/core/stack_memo.h"

namespace assay {

constinit StackMemos stack_memos = {};

void StackReads::begin(uint64_t frame, Batch *far) {
  too_many_ = newest_is_half_ = false;
  halves_ = used_ = batches_ = 0;
  far_ = far;
  frame_ = frame;
  furthest_ = newest_ = 0;
}

// The first of a batch fills it up.
void StackReads::put(uint32_t number, uint64_t at, Part part, __m128i words) {
  Batch &b = batch(number / kBatch);
  const uint32_t place = number % kBatch;
  for (uint32_t i = place; i < (place == 0 ? kBatch : place + 1); i++) {
    b.offsets[i] = (int32_t)(at - frame_);
    b.parts[i] = part;
    b.words[i] = words;
  }
}

void StackReads::add(uint64_t at, uint64_t value) {
  constexpr uint64_t kPage = 4096;
  const bool in_page = batches_ && at / kPage == newest_ / kPage;
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
      used_ = batches_ * kBatch;
    if (used_ == (kNear + kFar) * kBatch) {
      too_many_ = true;
      return;
    }
    bool has_next = at % kPage <= kPage - 16; // in its page
    put(used_, has_next ? at : at - 8, has_next ? kLow : kHigh, _mm_set1_epi64x((long long)value));
    batches_ = used_++ / kBatch + 1;
    newest_is_half_ = true;
    halves_++;
  }
  newest_ = at;
  newest_value_ = value;
  furthest_ = furthest_ < at ? at : furthest_;
}

// When all are handed out, beginnings share them. Of two threads that come at once each takes one, and the
// later one's stays.
uint8_t MemoPool::first_time(uint64_t beginning) {
  constexpr uint32_t kMemos = 1 << kBits;
  uint32_t next = __atomic_load_n(&used_, __ATOMIC_RELAXED);
  next = next < kMemos ? __atomic_fetch_add(&used_, 1, __ATOMIC_RELAXED) : kMemos;
  uint8_t number = (uint8_t)((next < kMemos ? next : beginning >> (64 - kBits)) + 1);
  __atomic_store_n(&index_[beginning >> (64 - kIndexBits)], number, __ATOMIC_RELAXED);
  return number;
}

void MemoPool::give_back_all() {
  for (uint32_t i = 0; i < used_ && i < 1 << kBits; i++)
    give_back(memos_[i]);
}

void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin) {
  memo.generation = __atomic_load_n(&stack_memos.generation, __ATOMIC_RELAXED);
  memo.context = 0; // until it is complete
  memo.type = type;
  memo.origin = origin;
  MemoPool &pool = stack_memos.of_main.owns(memo) ? stack_memos.of_main : stack_memos.of_others;
  memo.reads.begin(frame, pool.far_of(memo));
}

void end_memo(StackMemo &memo, uint32_t context) {
  memo.context = memo.reads.complete() ? context : 0;
}

void forget_memos() {
  __atomic_fetch_add(&stack_memos.generation, 1, __ATOMIC_RELAXED);
}

void give_back_all_memos() {
  stack_memos.of_main.give_back_all();
  stack_memos.of_others.give_back_all();
}

} // namespace assay
