// A program that allocates in a recursion unwinds the same outer frames a million times. A frame that was unwound once
// need not be again while nothing on the stack has changed that unwinding reads: of each frame, the return address
// and the saved rbp. To compare these is several times faster than to follow rules.
//
// So unwinding begins at the innermost frame and goes outwards until it meets the place of a frame of the last time.
// If the words of that one and of all frames outside it are as they were, the rest of the way is known. Where one has
// changed, what lies there now takes its place, as long as it leads to the same places; if it does not, the way is
// unwound on from there. Mostly it is the first frame or the second (update_nearby).
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
// The path need not be walked: its first frame is the innermost one of the outermost frame's
// function, and each next one the innermost of the function that the one before called. So of each
// function its innermost frame is kept, and the path is as much work as it is long, however deep
// the recursion. Where an outer frame changes and the inner ones do not, these stay as they are.
// Refused: to keep the path of every frame, because then a change far out costs as much as the
// whole stack.

#include "runtime/core/stacks/call_chain.h"

#include "runtime/core/runtime.h"

namespace assay {
namespace {

// Frames that are compared: all of a stack of kWhole; of a deeper one the kInner innermost, those
// of the folded path, and one at each doubling of the distance.
constexpr uint32_t kWhole = 96, kInner = 8;
constexpr uint32_t kBase =
    64; // outermost frames that are kept when a very deep stack loses its middle

constinit uint32_t code_generation = 0;

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
bool hold_together(const ChainFrame *from, const ChainFrame *to) {
  using Two = uint64_t __attribute__((vector_size(16), aligned(8), may_alias));
  Two changed = {};
#pragma clang loop unroll_count(2)
  for (; from < to; from++)
    changed |= *(const Two *)(from->left.at - 16) ^ *(const Two *)&from->left.rbp;
  return (changed[0] | changed[1]) == 0;
}
// The same of so many frames that were stored a moment ago, or called: word by word, as they were stored, because a
// processor waits for what it loads otherwise until that is in the cache.
constexpr uint32_t kNewest = 4, kCompared = 8;
bool newest_hold_together(const ChainFrame *frames) {
  uint64_t changed = 0;
  for (uint32_t i = 0; i < kNewest; i++) {
    const LeftFrame &f = frames[i].left;
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

bool is_same(const LeftFrame &a, const LeftFrame &b) {
  return a.at == b.at && a.pc == b.pc && a.rbp == b.rbp && a.saved_at == b.saved_at;
}

} // namespace

// Whatever is on the stack is unwound anew, by what is known of functions.
void CallChain::begin() {
  pop_to(0);
  gap_ = 0;
  cut_ = false;
}

// Before an update: not within one, which has taken numbers of functions already.
inline void CallChain::begin_on_other_stack_or_code(uint64_t end) {
  const uint32_t generation = __atomic_load_n(&code_generation, __ATOMIC_ACQUIRE);
  const bool forgets = generation_ != generation || known_functions_ > kMaxKnown;
  if (end == end_ && !forgets)
    return;
  begin();
  if (forgets)
    forget_functions();
  end_ = end;
  generation_ = generation;
}

void CallChain::clear() {
  end_ = 0;
  count_ = path_count_ = regular_ = 0;
  path_hash_ = 0;
  kept_.context = kNoContext;
  forget_functions();
}

void CallChain::forget_functions() {
  for (Function &each : functions_)
    if (each.begins) // else the page stays without memory of its own, or the parent's
      each = {};
  for (CallSite &each : call_sites_)
    if (each.pc)
      each = {};
  known_functions_ = 0;
}

uint16_t CallChain::number_of(uint64_t function) {
  static_assert(kFunctions == 1 << 12);
  uint64_t at = function * kSpread >> (64 - 12);
  for (; functions_[at].begins != function; at = (at + 1) % kFunctions)
    if (!functions_[at].begins) {
      functions_[at].begins = function;
      known_functions_++;
      break;
    }
  return (uint16_t)at;
}

const CallChain::CallSite &CallChain::call_site(uint64_t pc) {
  static_assert(kCallSites == 1 << 10);
  CallSite &site = call_sites_[pc * kSpread >> (64 - 10)];
  if (__builtin_expect(site.pc != pc, 0)) {
    const LeaveRule rule = leave_rule_at(pc);
    site = {pc, rule.bits, number_of(rule.function)};
  }
  return site;
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
      from = i > first + kCompared ? i - kCompared : first;
      if (!hold_together(frames_ + from, frames_ + i))
        break;
    }
  }
  auto compare_as_far_as = [&](uint32_t outermost) {
    while (i > outermost && holds(frames_[i - 1].left))
      i--;
    return i <= outermost;
  };
  if (compare_as_far_as(inner)) {
    if (inner == 0)
      return true;
    uint32_t on_path = path_count_;
    while (on_path > 0 && holds(frames_[path_[on_path - 1].frame].left))
      on_path--;
    uint32_t distance = 2 * kInner;
    while (distance < below && holds(frames_[below - distance].left))
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
  while (base < count_ && base < kBase && frames_[base].left.at > above &&
         holds(frames_[base].left))
    base++;
  return base;
}

// Its outermost frames.
void CallChain::cut_path_to(uint32_t count) {
  while (path_count_ > count)
    path_hash_ -= path_[--path_count_].hash;
}

// The path as far as it is outside this frame.
void CallChain::cut_path_at(uint32_t number) {
  while (path_count_ && path_[path_count_ - 1].frame >= number)
    cut_path_to(path_count_ - 1);
}

bool CallChain::is_on_path(uint32_t number) const {
  const uint16_t at = on_path_[number];
  return at < path_count_ && path_[at].frame == number;
}

// There is a frame of the same function further in than this one (from 1; 0: none), which may be on the path.
void CallChain::cut_path_of(uint16_t same) {
  if (!same || !runtime.options.fold_recursion)
    return;
  if (is_on_path(same - 1U))
    cut_path_to(on_path_[same - 1]);
}

// What the next frame of the path takes from the one before is kept out of memory: a store and the
// load that waits for it would be most of the work.
void CallChain::extend_path() {
  const bool folds = runtime.options.fold_recursion;
  uint32_t count = path_count_, first = 0, deepest = count, most = 0;
  uint64_t hash = path_hash_;
  if (count) {
    const PathFrame &outer = path_[count - 1];
    first = outer.frame + 1U;
    deepest = outer.deepest;
    most = path_[deepest].levels;
  }
  for (const uint32_t end = count_; first < end; count++) {
    uint32_t last = first;
    if (const uint16_t newest = functions_[function_[first]].newest;
        newest != first + 1 && folds) // foreseen: not waited for
      last = newest - 1U;
    const uint32_t levels = nth_[last] - nth_[first] + 1U;
    const uint64_t added = hash_at(count, frames_[last].hash);
    hash += added;
    if (levels >= most) {
      deepest = count;
      most = levels;
    }
    path_[count] = {added, levels, (uint16_t)last, (uint16_t)deepest};
    on_path_[last] = (uint16_t)count;
    first = last + 1;
  }
  path_count_ = count;
  path_hash_ = hash;
}

// This frame, counted from 1, may not keep rbp where code with frame pointers does.
inline void CallChain::note_if_odd(uint32_t end, const LeftFrame &left) {
  if (__builtin_expect(left.saved_at != left.at - 16, 0) && regular_ < end)
    regular_ = end;
}

inline void CallChain::push(const LeftFrame &left, uint64_t rule, uint16_t function) {
  kept_.context = kNoContext;
  frames_[count_] = {copy_of(left), rule, hash_of(left.pc)};
  function_[count_] = function;
  uint16_t &newest = functions_[function].newest;
  outer_same_[count_] = newest;
  nth_[count_] = newest ? nth_[newest - 1] + 1 : 1;
  cut_path_of(newest);
  newest = (uint16_t)++count_;
  note_if_odd(count_, left);
}

// Leaves all but so many of the outermost frames.
inline void CallChain::pop_to(uint32_t count) {
  if (count_ <= count)
    return;
  kept_.context = kNoContext;
  cut_path_at(count);
  while (count_ > count) {
    count_--;
    functions_[function_[count_]].newest = outer_same_[count_];
  }
  if (regular_ > count)
    regular_ = count;
}

// Neither its function until now nor this one has another frame: then the path leads as before.
bool CallChain::move_alone(uint32_t number, uint16_t function) {
  uint16_t &before = functions_[function_[number]].newest;
  if (before != number + 1 || outer_same_[number] || functions_[function].newest)
    return false;
  before = 0;
  functions_[function].newest = (uint16_t)(number + 1);
  function_[number] = function;
  return true;
}

// From the frames of its function to those of another one. Those that lie further in are gone
// through eight at once: to follow the lists, each step would wait for the one before.
void CallChain::move(uint32_t number, uint16_t function) {
  using Eight = uint16_t __attribute__((vector_size(2 * kAtOnce), aligned(2), may_alias));
  using Bytes = char __attribute__((vector_size(16)));
  const uint16_t before = function_[number];
  uint32_t next_before = kMax, next_of_function = kMax; // the next frames further in
  auto find = [](uint32_t &next, auto is_one, uint32_t i) {
    if (const auto bytes = (uint32_t)__builtin_ia32_pmovmskb128((Bytes)is_one);
        bytes && next == kMax)
      next = i + (uint32_t)__builtin_ctz(bytes) / 2;
  };
  for (uint32_t i = number + 1; i < count_; i += kAtOnce) {
    const Eight functions = *(const Eight *)(function_ + i);
    const auto are_before = functions == before, are_of_function = functions == function;
    *(Eight *)(nth_ + i) += (Eight)(are_before - are_of_function); // -1 where they are
    find(next_before, are_before, i);
    find(next_of_function, are_of_function, i);
  }
  auto link = [&](uint32_t next, uint16_t of) -> uint16_t & {
    return next < count_ ? outer_same_[next] : functions_[of].newest;
  };
  link(next_before, before) = outer_same_[number];
  uint16_t &to = link(next_of_function, function);
  const uint16_t same = to;
  to = (uint16_t)(number + 1);
  function_[number] = function;
  outer_same_[number] = same;
  nth_[number] = same ? nth_[same - 1] + 1 : 1;
  cut_path_of(same);
}

// Another frame lies where this one lay.
void CallChain::renew(uint32_t number, const LeftFrame &left) {
  const CallSite &site = call_site(left.pc);
  kept_.context = kNoContext;
  frames_[number] = {copy_of(left), site.rule, hash_of(left.pc)};
  note_if_odd(number + 1, left);
  const uint16_t function = site.function;
  if (function == function_[number] || move_alone(number, function)) {
    if (is_on_path(number)) {
      PathFrame &p = path_[on_path_[number]];
      path_hash_ -= p.hash;
      p.hash = hash_at(on_path_[number], frames_[number].hash);
      path_hash_ += p.hash;
    }
  } else {
    cut_path_at(number);
    move(number, function);
  }
}

// Does this frame's code keep a frame pointer, and does it lead to the place of the frame outside?
// As leave_frame() would say, but nothing is read from the stack: whether the frame there holds is
// asked with all the others.
inline bool CallChain::leads_outside(uint32_t number) const {
  const LeftFrame &inner = frames_[number].left, &outer = frames_[number - 1].left;
  return frames_[number].rule & kFramePointer && outer.saved_at == inner.rbp &&
         outer.at == inner.rbp + 16;
}

// Brings this frame, in whose place `left` lies now, and those outside it up to date, where others
// lie in their places. False where they lie elsewhere: then the frames from `right` on are as they
// should be, and no way out of them is known.
inline bool CallChain::renew_outside(uint32_t number, LeftFrame &left, uint32_t &right) {
  for (;;) {
    const bool same = is_same(left, frames_[number].left);
    if (!same) {
      renew(number, left);
      if (number == 0) {
        right = 0;
        return !leave_frame(frames_[0].rule, left.at, left.rbp, end_, left);
      }
    }
    if (!same && !(leads_outside(number) && holds(frames_[number - 1].left)))
      number--;
    else if (is_unchanged(number, number))
      return true;
    const ChainFrame &inner = frames_[number + 1];
    if (!leave_frame(inner.rule, inner.left.at, inner.left.rbp, end_, left) ||
        left.at != frames_[number].left.at) {
      right = number + 1;
      return false;
    }
  }
}

inline void CallChain::push_fresh(uint32_t count) {
  while (count-- > 0)
    push(fresh_[count].left, fresh_[count].rule, fresh_[count].function);
}

// Makes room in the chain of a very deep stack: between the outermost frames and the inner ones.
void CallChain::drop_middle(uint32_t fresh) {
  uint32_t keep = fresh < kMax / 2 ? kMax / 2 - fresh : 0, end = count_;
  pop_to(count_ < kBase ? count_ : kBase);
  uint32_t from = end - count_ > keep ? end - keep : count_;
  gap_ = count_;
  for (uint32_t i = from; i < end; i++)
    push(frames_[i].left, frames_[i].rule, function_[i]);
}

// Of so many of the outermost frames, those that are not further in than this place.
inline uint32_t CallChain::frames_outside(uint32_t count, uint64_t at) const {
  while (count && frames_[count - 1].left.at < at)
    count--;
  return count;
}

// Mostly a thread allocates where it did before, or one call further in. False where that is not so.
__attribute__((always_inline)) inline bool CallChain::update_nearby(uint64_t at) {
  const auto *words = (const uint64_t *)at;
  LeftFrame left = {at + 16, at, words[0], words[1]}, innermost;
  uint64_t rule;
  uint16_t function;
  uint32_t known = frames_outside(count_, left.at), right;
  const bool is_new = !known || frames_[known - 1].left.at != left.at;
  if (is_new) {
    innermost = copy_of(left);
    const CallSite &site = call_site(left.pc);
    rule = site.rule;
    function = site.function;
    if (!leave_frame(rule, left.at, left.rbp, end_, left))
      return false;
    known = frames_outside(known, left.at);
    if (!known || frames_[known - 1].left.at != left.at)
      return false;
  }
  pop_to(known);
  if (known == kMax || known <= gap_)
    return false;
  if (!renew_outside(known - 1, left, right)) {
    pop_to(right); // what lies further in is found again
    return false;
  }
  if (is_new)
    push(innermost, rule, function);
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
    if (known && frames_[known - 1].left.at == left.at) {
      pop_to(known);
      uint32_t right;
      if (renew_outside(known - 1, left, right)) {
        if (count_ <= gap_)
          gap_ = 0;
        if (count_ + fresh > kMax)
          drop_middle(fresh);
        break;
      }
      for (uint32_t i = known; i > right && fresh < kMax / 2; i--)
        fresh_[fresh++] = {frames_[i - 1].left, frames_[i - 1].rule, function_[i - 1]};
      left = fresh_[fresh - 1].left;
      rule = fresh_[fresh - 1].rule;
      known = right ? right - 1 : 0;
    } else {
      const CallSite &site = call_site(left.pc);
      fresh_[fresh++] = {copy_of(left), site.rule, site.function};
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
  begin_on_other_stack_or_code(end);
  if (!end)
    return;
  if (!update_nearby(at)) {
    extend_path(); // of what was found so far
    update_at_large(at);
  }
  extend_path();
}

uint64_t CallChain::path_hash(uint32_t depth) const {
  if (path_count_ <= depth)
    return path_hash_;
  uint64_t hash = 0;
  for (uint32_t calls = 0; calls < depth; calls++)
    hash += hash_at(calls, frames_[path_[path_count_ - 1 - calls].frame].hash);
  return ~hash;
}

uint64_t CallChain::levels() const {
  uint64_t levels = deepest().levels;
  if (gap_ == 0 && !cut_)
    return levels;
  uint64_t outside = gap_ ? frames_[gap_ - 1].left.at : end_;
  uint64_t inside = frames_[gap_].left.at, known = inside - frames_[count_ - 1].left.at;
  return levels + (known ? levels * (outside - inside) / known : 0);
}

void invalidate_call_chains() {
  __atomic_fetch_add(&code_generation, 1, __ATOMIC_RELEASE);
}

} // namespace assay
