#include "runtime/core/stack_memo.h"

namespace assay {
namespace {

constexpr uint32_t kMemos = 128;

constinit StackMemo memos[kMemos] = {};
constinit uint32_t generation = 1;

} // namespace

// One after the other: as long as all are the same, the next is one that unwinding would read.
bool StackReads::hold(uint64_t frame, uint64_t end) const {
  if (frame + furthest_ + 8 > end)
    return false;
  for (uint32_t i = 0; i < count_; i++)
    if (*(const uint64_t *)(frame + offsets_[i]) != values_[i])
      return false;
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
