#include "runtime/core/stack_memo.h"

namespace assay {
namespace {

constexpr uint32_t kMemos = 128;

constinit StackMemo memos[kMemos] = {};
constinit uint32_t generation = 1;

} // namespace

void StackReads::add(uint64_t offset, uint64_t value) {
  if (count_ > kMost || offset > UINT32_MAX) {
    count_ = kMost + 1; // too many
    return;
  }
  if (count_ && !entries_[count_ - 1].two && offset == entries_[count_ - 1].offset + 8ULL) {
    entries_[count_ - 1].two = true;
    entries_[count_ - 1].words[1] = value;
  } else if (count_ < kMost) {
    entries_[count_++] = {(uint32_t)offset, false, {value, 0}};
  } else {
    count_ = kMost + 1;
    return;
  }
  furthest_ = furthest_ < (uint32_t)offset ? (uint32_t)offset : furthest_;
}

// One after the other: as long as all are the same, the next is one that unwinding would read.
bool StackReads::hold(uint64_t frame, uint64_t end) const {
  if (frame + furthest_ + 8 > end)
    return false;
  for (const Entry *e = entries_; e < entries_ + count_; e++) {
    const uint64_t *at = (const uint64_t *)(frame + e->offset);
    if (e->two ? (at[0] ^ e->words[0]) | (at[1] ^ e->words[1]) : at[0] ^ e->words[0])
      return false;
  }
  return true;
}

StackMemo *take_memo(uint64_t beginning) {
  StackMemo &memo = memos[beginning >> 57];
  static_assert(kMemos == 128);
  return __atomic_test_and_set(&memo.taken, __ATOMIC_ACQUIRE) ? nullptr : &memo;
}

void give_back(StackMemo &memo) {
  __atomic_clear(&memo.taken, __ATOMIC_RELEASE);
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
  for (StackMemo &memo : memos)
    give_back(memo);
}

} // namespace assay
