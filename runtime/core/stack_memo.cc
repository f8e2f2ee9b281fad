#include "runtime/core/stack_memo.h"

namespace assay {
namespace {

constexpr uint32_t kMemos = 128;

constinit StackMemo memos[kMemos] = {};
constinit uint32_t generation = 1;

// A hash of the innermost frames, as frame pointers have it. Code that keeps none gives some other
// number, mostly the same.
uint64_t beginning(uint64_t frame, uint64_t end) {
  constexpr int kFrames = 4;
  uint64_t hash = frame;
  for (int i = 0; i < kFrames && frame + 16 <= end && frame % 8 == 0; i++) {
    const uint64_t *words = (const uint64_t *)frame;
    hash = (hash ^ words[1]) * 0x9e3779b97f4a7c15ULL;
    if (words[0] <= frame)
      break;
    frame = words[0];
  }
  return hash;
}

} // namespace

bool StackReads::hold(uint64_t frame, uint64_t end) const {
  if (frame + furthest_ + 8 > end)
    return false;
  auto differs = [&](uint32_t i) { return *(const uint64_t *)(frame + offsets_[i]) ^ values_[i]; };
  uint32_t i = 0;
  for (; i + 4 <= count_; i += 4) // mostly they do, so several are compared with one branch
    if (differs(i) | differs(i + 1) | differs(i + 2) | differs(i + 3))
      return false;
  for (; i < count_; i++)
    if (differs(i))
      return false;
  return true;
}

StackMemo *take_memo(uint64_t frame, uint64_t end) {
  StackMemo &memo = memos[beginning(frame, end) >> 57];
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
