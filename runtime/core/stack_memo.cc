#include "runtime/core/stack_memo.h"

#include "runtime/core/thread.h"

namespace assay {
namespace {

constexpr uint32_t kMemos = 128;

// The main thread has its own, which it takes without an atomic operation; all others share theirs.
constinit StackMemo memos_of_main[kMemos] = {}, memos_of_others[kMemos] = {};
constinit uint32_t generation = 1;

bool is_of_main(const StackMemo *memo) {
  return memo >= memos_of_main && memo < memos_of_main + kMemos;
}

} // namespace

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

bool StackReads::hold(uint64_t frame, uint64_t end) const {
  if (frame + furthest_ + 8 > end)
    return false;
  // The innermost were pushed a moment ago, as words: to load these as pairs would wait for the stores.
  constexpr uint32_t kPushedNow = 4, kAtOnce = 8;
  uint32_t i = 0;
  for (uint64_t differ = 0; i < kPushedNow && i < pairs_; i++) {
    const uint64_t *now = (const uint64_t *)(frame + pair_offsets_[i]);
    const uint64_t *then = (const uint64_t *)&pair_words_[i];
    differ |= (now[0] ^ then[0]) | (now[1] ^ then[1]);
    if (differ)
      return false;
  }
  while (i < pairs_) {
    __m128i differ = _mm_setzero_si128();
    for (uint32_t until = i + kAtOnce < pairs_ ? i + kAtOnce : pairs_; i < until; i++) {
      __m128i now = _mm_loadu_si128((const __m128i *)(frame + pair_offsets_[i]));
      differ = _mm_or_si128(differ, _mm_xor_si128(now, pair_words_[i]));
    }
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(differ, _mm_setzero_si128())) != 0xffff)
      return false;
  }
  for (uint32_t single = 0; single < singles_; single++)
    if (*(const uint64_t *)(frame + single_offsets_[single]) != single_words_[single])
      return false;
  return true;
}

StackMemo *take_memo(uint64_t beginning) {
  const uint64_t number = beginning >> 57;
  static_assert(kMemos == 128);
  if (thread_number() == kMainThread) {
    StackMemo &memo = memos_of_main[number];
    if (memo.taken)
      return nullptr;
    memo.taken = true;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return &memo;
  }
  StackMemo &memo = memos_of_others[number];
  return __atomic_test_and_set(&memo.taken, __ATOMIC_ACQUIRE) ? nullptr : &memo;
}

void give_back(StackMemo &memo) {
  if (is_of_main(&memo)) {
    __atomic_signal_fence(__ATOMIC_RELEASE);
    *(volatile bool *)&memo.taken = false;
  } else {
    __atomic_clear(&memo.taken, __ATOMIC_RELEASE);
  }
}

bool is_known(const StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin, uint64_t end) {
  return memo.context && memo.frame == frame && memo.type == type && memo.origin == origin &&
         memo.generation == __atomic_load_n(&generation, __ATOMIC_RELAXED) &&
         memo.reads.hold(frame, end);
}

void begin_memo(StackMemo &memo, uint64_t frame, uint32_t type, uint32_t origin) {
  memo.generation = __atomic_load_n(&generation, __ATOMIC_RELAXED);
  memo.frame = frame;
  memo.type = type;
  memo.origin = origin;
  memo.reads.clear();
}

void end_memo(StackMemo &memo, uint32_t context) {
  memo.context = memo.reads.complete() ? context : 0;
}

void forget_memos() {
  __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

void give_back_all_memos() {
  for (uint32_t i = 0; i < kMemos; i++) {
    give_back(memos_of_main[i]);
    give_back(memos_of_others[i]);
  }
}

} // namespace assay
