// A program that allocates in a recursion unwinds the same outer frames a million times. A frame that was unwound once
// need not be again while nothing on the stack has changed that unwinding reads: of each frame, the return address
// and the saved rbp. To compare these is several times faster than to follow rules.
//
// So unwinding begins at the innermost frame and goes outwards until it meets a frame of the last time: at the same place,
// with the same pc and rbp. If the words of all frames outside it are as they were, the rest of the way is known. If
// one has changed, the way is unwound on from there.
//
// Of a stack of more than a few hundred frames, which is a recursion, only the innermost, the outermost and some between
// are compared: what another round of the recursion would change there is folded away.
//
// Refused: to mark frames by changing their return addresses, as stack barriers do (the program's own unwinders
// would see it); to trust the outer frames unseen (a function called twice from one place in main leaves the same
// addresses as two functions would).
//
// Folding, where a recursion of a million objects would be a million paths. A frame's path is that of its outer
// neighbour and itself; if its function is on that path already, the path is taken back to there (a loop-erased
// walk). The innermost call is always kept, and what stands next to each other in a path called each other. Refused:
// to leave out repeated pcs only, because a function with several call sites leaves them in any order.

#include "runtime/core/call_chain.h"

#include "runtime/core/arena.h"
#include "runtime/core/runtime.h"

namespace assay {
namespace {

constexpr uint32_t kChains = 64;
// Frames that are compared: all of the innermost and of the outermost, every so-manieth between them.
constexpr uint32_t kInner = 128, kBase = 64, kStride = 64;

struct {
  CallChain *chains;
  uint32_t generation;
  bool taken[kChains];
} constinit pool = {};

uint64_t mix(uint64_t hash, uint64_t pc) {
  hash = (hash ^ pc) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

uint64_t bit_of(uint64_t function) {
  return 1ULL << ((function * 0x9e3779b97f4a7c15ULL) >> 58);
}

bool holds(const LeftFrame &f) {
  return *(const uint64_t *)(f.at - 8) == f.pc &&
         (!f.saved_at || *(const uint64_t *)f.saved_at == f.rbp);
}

} // namespace

void CallChain::begin(uint64_t end) {
  end_ = end;
  generation_ = __atomic_load_n(&pool.generation, __ATOMIC_RELAXED);
  count_ = gap_ = 0;
  cut_ = false;
}

// Are the frames below this number as they were? Else the innermost one that is not.
bool CallChain::is_unchanged(uint32_t below, uint32_t &changed) const {
  const uint32_t inner = below > kInner + kBase ? below - kInner : 0;
  uint32_t i = below;
  while (i > inner && holds(frames_[i - 1].left))
    i--;
  if (inner && i == inner) {
    while (i > kBase && holds(frames_[i - 1].left))
      i = i > kBase + kStride ? i - kStride : kBase;
    if (i == kBase)
      while (i > 0 && holds(frames_[i - 1].left))
        i--;
  }
  if (i == 0)
    return true;
  for (i = below; holds(frames_[i - 1].left);)
    i--;
  changed = i - 1;
  return false;
}

// How many of the outermost frames, all of them outside this address, are as they were.
uint32_t CallChain::unchanged_base(uint64_t above) const {
  uint32_t base = 0;
  while (base < count_ && base < kBase && frames_[base].left.at > above &&
         holds(frames_[base].left))
    base++;
  return base;
}

void CallChain::push(const LeftFrame &left, uint64_t function) {
  ChainFrame &f = frames_[count_];
  const uint64_t bit = bit_of(function);
  uint16_t outer = count_ ? (uint16_t)(count_ - 1) : kNoFrame, levels = 1;
  if (count_ && runtime.options.fold_recursion && frames_[outer].seen & bit) {
    // Which of the two next ones it is, is often chance: no branch depends on it.
    uint16_t second = frames_[outer].outer == kNoFrame ? outer : frames_[outer].outer;
    uint16_t i = frames_[outer].function == function ? outer : second;
    while (i != kNoFrame && frames_[i].function != function)
      i = frames_[i].outer;
    if (i != kNoFrame) {
      levels = (uint16_t)(frames_[i].levels + 1);
      outer = frames_[i].outer;
    }
  }
  f.left = left;
  f.function = function;
  f.outer = outer;
  f.levels = levels;
  if (outer == kNoFrame) {
    f.depth = 1;
    f.hash = mix(0, left.pc);
    f.seen = bit;
    f.deepest = (uint16_t)count_;
  } else {
    const ChainFrame &o = frames_[outer];
    f.depth = (uint16_t)(o.depth + 1);
    f.hash = mix(o.hash, left.pc);
    f.seen = o.seen | bit;
    f.deepest = levels >= frames_[o.deepest].levels ? (uint16_t)count_ : o.deepest;
  }
  count_++;
}

void CallChain::push_fresh(uint32_t count) {
  while (count-- > 0)
    push(fresh_[count].left, fresh_[count].function);
}

// Makes room in the chain of a very deep stack: between the outermost frames and the inner ones.
void CallChain::drop_middle(uint32_t fresh) {
  uint32_t keep = fresh < kMost / 2 ? kMost / 2 - fresh : 0, end = count_;
  count_ = count_ < kBase ? count_ : kBase;
  uint32_t from = end - count_ > keep ? end - keep : count_;
  gap_ = count_;
  for (uint32_t i = from; i < end; i++)
    push(LeftFrame(frames_[i].left), frames_[i].function);
}

void CallChain::update(const void *frame) {
  const uint64_t at = (uint64_t)frame, end = end_of_stack(at);
  if (end != end_ || generation_ != __atomic_load_n(&pool.generation, __ATOMIC_RELAXED))
    begin(end);
  if (!end)
    return;
  // The interposed function's own frame is ours, so it has a frame pointer.
  uint64_t rsp = at, rbp = at, rule = kRuleKnown | kFramePointer;
  uint32_t fresh = 0, known = count_; // frames from here on are left behind
  LeftFrame left = {};
  for (;;) {
    if (!leave_frame(rule, rsp, rbp, end, left)) { // the outermost frame
      begin(end);
      push_fresh(fresh);
      return;
    }
    while (known && frames_[known - 1].left.at < left.at)
      known--;
    if (known) {
      const LeftFrame &same = frames_[known - 1].left;
      if (same.at == left.at && same.pc == left.pc && same.rbp == left.rbp &&
          same.saved_at == left.saved_at) {
        uint32_t changed;
        if (is_unchanged(known - 1, changed))
          break;
        for (uint32_t i = known; i > changed + 1 && fresh < kMost / 2; i--)
          fresh_[fresh++] = {frames_[i - 1].left, frames_[i - 1].function};
        left = fresh_[fresh - 1].left;
        rule = leave_rule_at(left.pc).bits;
        known = changed;
        rsp = left.at;
        rbp = left.rbp;
        if (fresh < kMost / 2)
          continue;
      }
    }
    if (fresh == kMost / 2) {
      count_ = unchanged_base(left.at);
      gap_ = count_;
      cut_ = count_ == 0;
      push_fresh(fresh);
      return;
    }
    LeaveRule next = leave_rule_at(left.pc);
    fresh_[fresh++] = {left, next.function};
    rule = next.bits;
    rsp = left.at;
    rbp = left.rbp;
  }
  count_ = known;
  if (count_ <= gap_)
    gap_ = 0;
  if (count_ + fresh > kMost)
    drop_middle(fresh);
  push_fresh(fresh);
}

uint64_t CallChain::path_hash(uint32_t depth) const {
  if (innermost().depth <= depth)
    return innermost().hash;
  uint64_t hash = 0;
  const ChainFrame *f = &innermost();
  for (; depth > 0; depth--, f = &frames_[f->outer])
    hash = mix(hash, ~f->left.pc);
  return hash;
}

uint64_t CallChain::levels() const {
  uint64_t levels = frames_[innermost().deepest].levels;
  if (gap_ == 0 && !cut_)
    return levels;
  uint64_t outside = gap_ ? frames_[gap_ - 1].left.at : end_;
  uint64_t inside = frames_[gap_].left.at, known = inside - innermost().left.at;
  return levels + (known ? levels * (outside - inside) / known : 0);
}

// A thread is not interrupted by another user of its chain: handlers that come now are not recorded (Busy).
TakenChain::TakenChain() : number_(0) {
  uint32_t thread = thread_number();
  if (thread != kMainThread)
    do
      number_ = 1 + thread++ % (kChains - 1);
    while (__atomic_test_and_set(&pool.taken[number_], __ATOMIC_ACQUIRE));
  chain_ = &pool.chains[number_];
}

TakenChain::~TakenChain() {
  __atomic_clear(&pool.taken[number_], __ATOMIC_RELEASE); // a plain store
}

bool create_call_chains() {
  if (!pool.chains)
    pool.chains = (CallChain *)reserve(kChains * sizeof(CallChain));
  return pool.chains != nullptr;
}

void invalidate_call_chains() {
  __atomic_fetch_add(&pool.generation, 1, __ATOMIC_RELAXED);
}

void reset_call_chains_in_child() {
  for (bool &taken : pool.taken)
    taken = false;
}

} // namespace assay
