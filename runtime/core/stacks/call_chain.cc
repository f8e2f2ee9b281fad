// A program that allocates in a recursion unwinds the same outer frames a million times. A frame that was unwound once
// need not be again while nothing on the stack has changed that unwinding reads: of each frame, the return address
// and the saved rbp. To compare these is several times faster than to follow rules.
//
// So unwinding begins at the innermost frame and goes outwards until it meets a frame of the last
// time: at the same place, with the same pc and rbp. If the words of all frames outside it are as
// they were, the rest of the way is known. If one has changed, the way is unwound on from there.
//
// Of a stack of more than a hundred frames only the innermost, those of the folded path and some
// between are compared: a change between two frames of the path is another round of a recursion,
// which is folded away.
//
// Refused: to mark frames by changing their return addresses, as stack barriers do (the program's own unwinders
// would see it); to trust the outer frames unseen (a function called twice from one place in main leaves the same
// addresses as two functions would).
//
// Folding, where a recursion of a million objects would be a million paths. A frame's path is that of its outer
// neighbour and itself; if its function is on that path already, the path is taken back to there (a loop-erased
// walk). The innermost call is always kept, and what stands next to each other in a path called each other. Refused:
// to leave out repeated pcs only, because a function with several call sites leaves them in any order.
//
// The path as far as a frame follows from that of its outer neighbour, so each frame keeps its own, and only those of
// frames that are new, and of what lies further in, are made again. Whether a function is on a path already is asked
// of the neighbour first, and of the others only where a bit says that it may be.

#include "runtime/core/stacks/call_chain.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"

namespace assay {
namespace {

constexpr uint32_t kChains = 64;
// Frames that are compared: all of a stack of kWhole; of a deeper one the kInner innermost, those
// of the folded path, and one at each doubling of the distance.
constexpr uint32_t kWhole = 96, kInner = 8;
constexpr uint32_t kBase =
    64; // outermost frames that are kept when a very deep stack loses its middle

struct {
  CallChain *chains;
  uint32_t generation;
  uint32_t taken_by[kChains]; // threads; 0: none
} constinit pool = {};

// A path's hash is a sum, so that the frames need not wait for each other; what one adds depends on its place.
constexpr uint64_t kSpread =
    0x9e3779b97f4a7c15; // its upper bits depend on all of what it multiplies
uint64_t hash_of(uint64_t pc) {
  pc *= kSpread;
  return (pc ^ pc >> 29) * 0xd6e8feb86659fd93ULL;
}
uint64_t hash_at(uint64_t place, uint64_t hash) {
  return hash * (2 * place + 1);
}

bool holds(const LeftFrame &f) {
  const uint64_t *words = (const uint64_t *)(f.at - 16);
  if (__builtin_expect(f.saved_at == f.at - 16, 1))
    return ((words[0] ^ f.rbp) | (words[1] ^ f.pc)) == 0;
  return words[1] == f.pc && (!f.saved_at || *(const uint64_t *)f.saved_at == f.rbp);
}

// As holds(), of all frames from one to another, of which each keeps rbp where code with frame pointers does.
bool hold_together(const LeftFrame *from, const LeftFrame *to) {
  using Two = uint64_t __attribute__((vector_size(16), aligned(8), may_alias));
  Two changed = {};
#pragma clang loop unroll_count(2)
  for (; from < to; from++)
    changed |= *(const Two *)(from->at - 16) ^ *(const Two *)&from->rbp;
  return (changed[0] | changed[1]) == 0;
}
// The same of so many frames that were stored a moment ago, or called: word by word, as they were stored, because a
// processor waits for what it loads otherwise until that is in the cache.
constexpr uint32_t kNewest = 4, kAtOnce = 8;
bool newest_hold_together(const LeftFrame *frames) {
  uint64_t changed = 0;
  for (uint32_t i = 0; i < kNewest; i++) {
    const LeftFrame &f = frames[i];
    const uint64_t *words = (const uint64_t *)(f.at - 16);
    changed |= (words[0] ^ f.rbp) | (words[1] ^ f.pc);
  }
  return changed == 0;
}

// Word by word, for the same reason.
LeftFrame copy_of(const LeftFrame &f) {
  LeftFrame copy;
  copy.at = __atomic_load_n(&f.at, __ATOMIC_RELAXED);
  copy.saved_at = __atomic_load_n(&f.saved_at, __ATOMIC_RELAXED);
  copy.rbp = __atomic_load_n(&f.rbp, __ATOMIC_RELAXED);
  copy.pc = __atomic_load_n(&f.pc, __ATOMIC_RELAXED);
  return copy;
}

CallSite copy_of(const CallSite &s) {
  CallSite copy;
  copy.rule = __atomic_load_n(&s.rule, __ATOMIC_RELAXED);
  copy.function = __atomic_load_n(&s.function, __ATOMIC_RELAXED);
  copy.function_bit = __atomic_load_n(&s.function_bit, __ATOMIC_RELAXED);
  copy.hash = __atomic_load_n(&s.hash, __ATOMIC_RELAXED);
  return copy;
}

bool is_same(const LeftFrame &a, const LeftFrame &b) {
  return a.at == b.at && a.pc == b.pc && a.rbp == b.rbp && a.saved_at == b.saved_at;
}

bool is_same(const FoldedPath &a, const FoldedPath &b) {
  return a.hash == b.hash && a.functions == b.functions && a.depth == b.depth &&
         a.outer == b.outer && a.same == b.same && a.recurring == b.recurring;
}

} // namespace

// Whatever is on the stack is unwound anew, by what is known of functions.
void CallChain::begin() {
  pop_to(0);
  gap_ = 0;
  cut_ = false;
}

void CallChain::begin_on_other_stack_or_code(uint64_t end) {
  begin();
  end_ = end;
  if (const uint32_t generation = __atomic_load_n(&pool.generation, __ATOMIC_ACQUIRE);
      generation_ != generation) {
    forget_call_sites();
    generation_ = generation;
  }
}

void CallChain::clear() {
  end_ = 0;
  count_ = regular_ = folded_ = kept_ = renewed_ = 0;
  has_new_functions_ = false;
  forget_call_sites();
}

void CallChain::forget_call_sites() {
  for (KnownSite &each : known_sites_)
    if (each.pc) // else the page stays without memory of its own, or the parent's
      each = {};
}

inline const CallSite &CallChain::call_site(uint64_t pc) {
  static_assert(kCallSites == 1 << 10);
  KnownSite &site = known_sites_[pc * kSpread >> (64 - 10)];
  if (__builtin_expect(site.pc != pc, 0)) {
    const LeaveRule rule = leave_rule_at(pc);
    site = {pc, {rule.bits, rule.function, 1ULL << (rule.function * kSpread >> 58), hash_of(pc)}};
  }
  return site.site;
}

// Are the frames below this number as they were? Else the innermost one that is not.
__attribute__((always_inline)) inline bool CallChain::is_unchanged(uint32_t below,
                                                                   uint32_t &changed) const {
  const uint32_t inner = below > kWhole ? below - kInner : 0;
  uint32_t i = below;
  if (const uint32_t first = inner > regular_ ? inner : regular_;
      below >= first + kNewest && newest_hold_together(frames_ + below - kNewest)) {
    i -= kNewest;
    for (uint32_t from; i > first; i = from) {
      from = i > first + kAtOnce ? i - kAtOnce : first;
      if (!hold_together(frames_ + from, frames_ + i))
        break;
    }
  }
  auto compare_as_far_as = [&](uint32_t outermost) {
    while (i > outermost && holds(frames_[i - 1]))
      i--;
    return i <= outermost;
  };
  if (compare_as_far_as(inner)) {
    if (inner == 0)
      return true;
    uint32_t on_path = below;
    while (on_path > 0 && holds(frames_[on_path - 1]))
      on_path = paths_[on_path - 1].outer;
    uint32_t distance = 2 * kInner;
    while (distance < below && holds(frames_[below - distance]))
      distance *= 2;
    if (on_path == 0 && distance >= below)
      return true;
    if (compare_as_far_as(0)) // a frame of the path that lies further in
      return true;
  }
  changed = i - 1;
  return false;
}

// How many of the outermost frames, all of them outside this address, are as they were.
uint32_t CallChain::unchanged_base(uint64_t above) const {
  uint32_t base = 0;
  while (base < count_ && base < kBase && frames_[base].at > above && holds(frames_[base]))
    base++;
  return base;
}

inline void CallChain::set(uint32_t number, const LeftFrame &left, const CallSite &site) {
  frames_[number] = copy_of(left);
  sites_[number] = copy_of(site);
  if (__builtin_expect(left.saved_at != left.at - 16, 0) && regular_ <= number)
    regular_ = number + 1;
}

// Leaves all but so many of the outermost frames.
inline void CallChain::pop_to(uint32_t count) {
  auto cut = [count](uint32_t &frames) { frames = frames < count ? frames : count; };
  cut(count_);
  cut(folded_);
  cut(kept_);
  cut(regular_);
}

// Another frame lies where this one lay.
inline void CallChain::renew(uint32_t number, const LeftFrame &left) {
  const CallSite &site = call_site(left.pc);
  has_new_functions_ |= site.function != sites_[number].function;
  set(number, left, site);
  if (renewed_ <= number)
    renewed_ = number + 1;
  if (folded_ > number)
    folded_ = number;
}

// The path as far as this frame, where those of its outer neighbours are known.
inline FoldedPath CallChain::path_to(uint32_t number) const {
  const CallSite &site = sites_[number];
  FoldedPath path = {0, site.function_bit, 0, (uint16_t)number, 0, 0};
  if (number && paths_[number - 1].functions & site.function_bit &&
      runtime.options.fold_recursion) {
    uint32_t same = number;
    while (same && sites_[same - 1].function != site.function)
      same = paths_[same - 1].outer;
    if (same) {
      path.outer = paths_[same - 1].outer;
      path.same = (uint16_t)same;
      path.recurring = (uint16_t)(number + 1);
    }
  }
  if (path.outer) {
    const FoldedPath &outer = paths_[path.outer - 1];
    path.hash = outer.hash;
    path.functions |= outer.functions;
    path.depth = outer.depth;
    if (!path.recurring)
      path.recurring = outer.recurring;
  }
  path.hash += hash_at(path.depth++, site.hash);
  return path;
}

// Makes the paths of frames that have none. Further in than the innermost one that was renewed, paths are soon what
// they were; how often a function is there is counted again, where functions are others.
inline void CallChain::fold() {
  for (uint32_t number = folded_; number < count_; number++) {
    const FoldedPath path = path_to(number);
    if (number >= renewed_ && number < kept_ && is_same(path, paths_[number])) {
      for (; has_new_functions_ && number < kept_; number++)
        levels_[number + 1] = levels_[paths_[number].same] + 1;
      number = kept_ - 1;
      continue;
    }
    paths_[number] = path;
    levels_[number + 1] = levels_[path.same] + 1;
  }
  folded_ = kept_ = count_;
  renewed_ = 0;
  has_new_functions_ = false;
}

// Does this frame's code keep a frame pointer, and does it lead to the place of the frame outside?
inline bool CallChain::leads_outside(uint32_t number) const {
  const LeftFrame &inner = frames_[number], &outer = frames_[number - 1];
  return sites_[number].rule & kFramePointer && outer.saved_at == inner.rbp &&
         outer.at == inner.rbp + 16;
}

// Brings this frame, in whose place `left` lies now, and those outside it up to date, where others lie in their places.
// False where they lie elsewhere, from this one on.
inline bool CallChain::renew_outside(uint32_t number, LeftFrame &left, uint32_t &changed) {
  for (;;) {
    const bool same = is_same(left, frames_[number]);
    if (!same) {
      renew(number, left);
      if (number == 0)
        return !leave_frame(sites_[0].rule, left.at, left.rbp, end_, left);
    }
    if (!same && !leads_outside(number))
      number--;
    else if (is_unchanged(number, number))
      return true;
    const LeftFrame &inner = frames_[number + 1];
    if (!leave_frame(sites_[number + 1].rule, inner.at, inner.rbp, end_, left) ||
        left.at != frames_[number].at) {
      changed = number;
      return false;
    }
  }
}

inline void CallChain::push_fresh(uint32_t count) {
  while (count-- > 0)
    set(count_++, fresh_[count].left, fresh_[count].site);
}

// Makes room in the chain of a very deep stack: between the outermost frames and the inner ones.
void CallChain::drop_middle(uint32_t fresh) {
  uint32_t keep = fresh < kMax / 2 ? kMax / 2 - fresh : 0, end = count_;
  pop_to(count_ < kBase ? count_ : kBase);
  uint32_t from = end - count_ > keep ? end - keep : count_;
  gap_ = count_;
  for (uint32_t i = from; i < end; i++)
    set(count_++, frames_[i], sites_[i]);
}

// Of so many of the outermost frames, those that are not further in than this place.
inline uint32_t CallChain::frames_outside(uint32_t count, uint64_t at) const {
  while (count && frames_[count - 1].at < at)
    count--;
  return count;
}

// Mostly a thread allocates where it did before, or one call further in. False where that is not so.
__attribute__((always_inline)) inline bool CallChain::update_nearby(uint64_t at) {
  const auto *words = (const uint64_t *)at;
  LeftFrame left = {at + 16, at, words[0], words[1]}, innermost;
  CallSite site;
  uint32_t known = frames_outside(count_, left.at), changed;
  const bool is_new = !known || frames_[known - 1].at != left.at;
  if (is_new) {
    innermost = copy_of(left);
    site = copy_of(call_site(left.pc));
    if (!leave_frame(site.rule, left.at, left.rbp, end_, left))
      return false;
    known = frames_outside(known, left.at);
    if (!known || frames_[known - 1].at != left.at)
      return false;
  }
  pop_to(known);
  if (known == kMax || known <= gap_)
    return false;
  if (!renew_outside(known - 1, left, changed)) {
    frames_[changed + 1].pc = 0; // does not hold, so that the way out of it is looked for again
    return false;
  }
  if (is_new)
    set(count_++, innermost, site);
  return true;
}

__attribute__((noinline)) void CallChain::update_at_large(uint64_t at) {
  // The interposed function's own frame is ours, so it has a frame pointer.
  uint64_t rsp = at, rbp = at, rule = kRuleKnown | kFramePointer;
  uint32_t fresh = 0, known = count_; // frames from here on are left behind
  LeftFrame left = {};
  for (;;) {
    if (!leave_frame(rule, rsp, rbp, end_, left)) { // the outermost frame
      begin();
      break;
    }
    known = frames_outside(known, left.at);
    if (known && frames_[known - 1].at == left.at) {
      pop_to(known);
      uint32_t changed;
      if (renew_outside(known - 1, left, changed)) {
        if (count_ <= gap_)
          gap_ = 0;
        if (count_ + fresh > kMax)
          drop_middle(fresh);
        break;
      }
      for (uint32_t i = known; i > changed + 1 && fresh < kMax / 2; i--)
        fresh_[fresh++] = {frames_[i - 1], sites_[i - 1]};
      left = fresh_[fresh - 1].left;
      rule = fresh_[fresh - 1].site.rule;
      known = changed;
    } else {
      const CallSite &site = call_site(left.pc);
      fresh_[fresh++] = {copy_of(left), copy_of(site)};
      rule = site.rule;
    }
    if (fresh == kMax / 2) { // the outer frames are too many
      pop_to(unchanged_base(left.at));
      gap_ = count_;
      cut_ = count_ == 0;
      break;
    }
    rsp = left.at;
    rbp = left.rbp;
  }
  push_fresh(fresh);
}

void CallChain::update(const void *frame) {
  const uint64_t at = (uint64_t)frame, end = end_of_stack(at);
  if (__builtin_expect(
          end != end_ || generation_ != __atomic_load_n(&pool.generation, __ATOMIC_ACQUIRE), 0))
    begin_on_other_stack_or_code(end);
  if (!end)
    return;
  if (!update_nearby(at)) {
    fold(); // what was found so far
    update_at_large(at);
  }
  fold();
}

uint64_t CallChain::path_hash(uint32_t depth) const {
  if (!count_)
    return 0;
  if (path().depth <= depth)
    return path().hash;
  uint64_t hash = 0;
  for (uint32_t calls = 0, frame = count_; calls < depth; calls++, frame = paths_[frame - 1].outer)
    hash += hash_at(calls, sites_[frame - 1].hash);
  return ~hash;
}

void CallChain::copy_pcs(uint64_t *pcs, uint32_t depth) const {
  for (uint32_t calls = 0, frame = count_; calls < depth; calls++, frame = paths_[frame - 1].outer)
    pcs[calls] = frames_[frame - 1].pc;
}

CallChain::Recursion CallChain::deepest() const {
  Recursion deepest = {0, 0};
  for (uint32_t frame = path().recurring; frame;) {
    const FoldedPath &to = paths_[frame - 1];
    if (levels_[frame] > deepest.levels)
      deepest = {levels_[frame], (uint32_t)(path().depth - to.depth)};
    frame = to.outer ? paths_[to.outer - 1].recurring : 0;
  }
  if (gap_ == 0 && !cut_)
    return deepest;
  uint64_t outside = gap_ ? frames_[gap_ - 1].at : end_;
  uint64_t inside = frames_[gap_].at, known = inside - frames_[count_ - 1].at;
  if (known)
    deepest.levels += deepest.levels * (outside - inside) / known;
  return deepest;
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
  __atomic_fetch_add(&pool.generation, 1, __ATOMIC_RELEASE);
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
