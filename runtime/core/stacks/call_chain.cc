// A program that allocates in a recursion unwinds the same outer frames a million times. A frame that was unwound once
// need not be again while nothing on the stack has changed that unwinding reads: of each frame, the return address
// and the saved rbp. To compare these is several times faster than to follow rules.
//
// So unwinding begins at the innermost frame and goes outwards until it meets a frame of the last time: at the same place,
// with the same pc and rbp. If the words of all frames outside it are as they were, the rest of the way is known. If
// one has changed, the way is unwound on from there.
//
// Of a stack of more than a hundred frames only the innermost, those of the folded path and some between are compared: a
// change between two frames of the path is another round of a recursion, which is folded away.
//
// Refused: to mark frames by changing their return addresses, as stack barriers do (the program's own unwinders
// would see it); to trust the outer frames unseen (a function called twice from one place in main leaves the same
// addresses as two functions would).
//
// Folding, where a recursion of a million objects would be a million paths. A frame's path is that of its outer
// neighbour and itself; if its function is on that path already, the path is taken back to there (a loop-erased
// walk). The innermost call is always kept, and what stands next to each other in a path called each other. Refused:
// to leave out repeated pcs only, because a function with several call sites leaves them in any order.

#include "runtime/core/stacks/call_chain.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"

namespace assay {
namespace {

constexpr uint32_t kChains = 64;
// Frames that are compared: all of a stack of kWhole; of a deeper one the kInner innermost, those of the folded path, and
// one at each doubling of the distance.
constexpr uint32_t kWhole = 96, kInner = 32;
constexpr uint32_t kBase =
    64; // outermost frames that are kept when a very deep stack loses its middle

struct {
  CallChain *chains;
  uint32_t generation;
  uint32_t taken_by[kChains]; // threads; 0: none
} constinit pool = {};

uint64_t mix(uint64_t hash, uint64_t pc) {
  hash = (hash ^ pc) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

uint32_t slot_of(uint64_t function, uint32_t slots) {
  return (uint32_t)((function * 0x9e3779b97f4a7c15ULL) >> 40) % slots;
}

bool holds(const LeftFrame &f) {
  return *(const uint64_t *)(f.at - 8) == f.pc &&
         (!f.saved_at || *(const uint64_t *)f.saved_at == f.rbp);
}

} // namespace

void CallChain::begin(uint64_t end) {
  end_ = end;
  generation_ = __atomic_load_n(&pool.generation, __ATOMIC_RELAXED);
  pop_to(0);
  gap_ = 0;
  cut_ = false;
}

void CallChain::clear() {
  end_ = 0;
  count_ = 0;
  for (uint16_t &slot : newest_)
    slot = 0;
}

// Are the frames below this number as they were? Else the innermost one that is not.
bool CallChain::is_unchanged(uint32_t below, uint32_t &changed) const {
  const uint32_t inner = below > kWhole ? below - kInner : 0;
  uint32_t i = below;
  while (i > inner && holds(frames_[i - 1].left))
    i--;
  if (i == 0)
    return true;
  if (i == inner) {
    uint16_t on_path = (uint16_t)(below - 1);
    while (on_path != kNoFrame && holds(frames_[on_path].left))
      on_path = frames_[on_path].outer;
    uint32_t distance = 2 * kInner;
    while (distance < below && holds(frames_[below - distance].left))
      distance *= 2;
    if (on_path == kNoFrame && distance >= below)
      return true;
    for (i = inner; holds(frames_[i - 1].left);)
      i--;
  }
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

// The frame of this function on the innermost frame's path. A function has one at most, its newest, because each took
// the place of the one before.
uint16_t CallChain::find_on_path(uint64_t function) const {
  uint16_t i = newest_[slot_of(function, kSlots)];
  while (i && frames_[i - 1].function != function)
    i = frames_[i - 1].replaced_newest;
  if (!i || frames_[i - 1].depth > innermost().depth || path_[frames_[i - 1].depth] != i - 1)
    return kNoFrame;
  return (uint16_t)(i - 1);
}

void CallChain::push(const LeftFrame &left, uint64_t function) {
  const uint16_t number = (uint16_t)count_;
  ChainFrame &f = frames_[number];
  uint16_t outer = number ? (uint16_t)(number - 1) : kNoFrame;
  uint32_t levels = 1;
  if (number && runtime.options.fold_recursion)
    if (uint16_t same = find_on_path(function); same != kNoFrame) {
      levels = frames_[same].levels + 1;
      outer = frames_[same].outer;
    }
  f.left = left;
  f.function = function;
  f.outer = outer;
  f.levels = levels;
  if (outer == kNoFrame) {
    f.depth = 1;
    f.hash = mix(0, left.pc);
    f.deepest = number;
  } else {
    const ChainFrame &o = frames_[outer];
    f.depth = (uint16_t)(o.depth + 1);
    f.hash = mix(o.hash, left.pc);
    f.deepest = levels >= frames_[o.deepest].levels ? number : o.deepest;
  }
  uint16_t &newest = newest_[slot_of(function, kSlots)];
  f.replaced_on_path = path_[f.depth];
  f.replaced_newest = newest;
  path_[f.depth] = number;
  newest = (uint16_t)(number + 1);
  count_++;
}

// Leaves all but so many of the outermost frames.
void CallChain::pop_to(uint32_t count) {
  while (count_ > count) {
    const ChainFrame &f = frames_[--count_];
    path_[f.depth] = f.replaced_on_path;
    newest_[slot_of(f.function, kSlots)] = f.replaced_newest;
  }
}

void CallChain::push_fresh(uint32_t count) {
  while (count-- > 0)
    push(fresh_[count].left, fresh_[count].function);
}

// Makes room in the chain of a very deep stack: between the outermost frames and the inner ones.
void CallChain::drop_middle(uint32_t fresh) {
  uint32_t keep = fresh < kMax / 2 ? kMax / 2 - fresh : 0, end = count_;
  pop_to(count_ < kBase ? count_ : kBase);
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
        for (uint32_t i = known; i > changed + 1 && fresh < kMax / 2; i--)
          fresh_[fresh++] = {frames_[i - 1].left, frames_[i - 1].function};
        left = fresh_[fresh - 1].left;
        rule = leave_rule_at(left.pc).bits;
        known = changed;
        rsp = left.at;
        rbp = left.rbp;
        if (fresh < kMax / 2)
          continue;
      }
    }
    if (fresh == kMax / 2) {
      pop_to(unchanged_base(left.at));
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
  pop_to(known);
  if (count_ <= gap_)
    gap_ = 0;
  if (count_ + fresh > kMax)
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

// A thread is not interrupted by another user of its chain: handlers that come now are not recorded (ReentrancyGuard).
TakenChain::TakenChain() : number_(0) {
  const uint32_t thread = thread_number();
  if (thread != kMainThread) {
    uint32_t next = thread, nobody;
    do {
      number_ = 1 + next++ % (kChains - 1);
      nobody = 0;
    } while (!__atomic_compare_exchange_n(&pool.taken_by[number_], &nobody, thread, false,
                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
  }
  chain_ = &pool.chains[number_];
}

TakenChain::~TakenChain() {
  __atomic_store_n(&pool.taken_by[number_], 0, __ATOMIC_RELEASE);
}

bool create_call_chains() {
  if (!pool.chains)
    pool.chains = (CallChain *)reserve(kChains * sizeof(CallChain));
  return pool.chains != nullptr;
}

void invalidate_call_chains() {
  __atomic_fetch_add(&pool.generation, 1, __ATOMIC_RELAXED);
}

// What another thread was about to change is not consistent. What this thread was about to change, before a handler
// that forks came, stays its own.
static void reset_call_chains_in_child() {
  for (uint32_t i = 0; i < kChains; i++)
    if (pool.taken_by[i] && pool.taken_by[i] != thread_number()) {
      pool.chains[i].clear();
      pool.taken_by[i] = 0;
    }
}
ASSAY_RESET_IN_CHILD(reset_call_chains_in_child);

} // namespace assay
