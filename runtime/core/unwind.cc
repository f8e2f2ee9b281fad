// A frame with a frame pointer is two loads. But who keeps one? assay-cc's code does; libstdc++, qsort
// and most libraries use rbp for anything, and a program may be linked from objects of both kinds:
// following rbp there would swallow the user's frames behind it. So the rule for each pc comes from
// .eh_frame, once, and is then cached; most say "by frame pointer".
//
// Each step must stay inside the current stack and go outwards, which makes a wrong rule end the
// chain early but never read beyond the stack. The bounds of a thread's stack come from the maps file,
// once for each thread (and once more when it moves to another stack, as coroutines do).

#include "runtime/core/unwind.h"

#include "runtime/core/cfi.h"
#include "runtime/core/lock.h"
#include "runtime/core/proc_maps.h"
#include "runtime/core/runtime.h"
#include "runtime/core/thread.h"

namespace assay {
namespace {

constexpr uint32_t kMostStacks = 4096;

struct {
  SpinLock lock;
  uint32_t count;
  StackBounds bounds[kMostStacks];
} constinit stacks = {};

// Under nobody's lock; a thread comes here once.
void remember_stack(StackBounds bounds) {
  Locked locked(stacks.lock);
  for (uint32_t i = 0; i < stacks.count; i++)
    if (stacks.bounds[i].high == bounds.high)
      return;
  if (stacks.count < kMostStacks) {
    stacks.bounds[stacks.count] = bounds;
    __atomic_store_n(&stacks.count, stacks.count + 1, __ATOMIC_RELEASE);
  }
}

// The thread's own stack, from the maps file.
bool find_own_stack(uint64_t sp) {
  // A main stack grows downwards inside room that the kernel keeps free below it.
  constexpr uint64_t kGrowth = 8 << 20;
  MapsReader maps;
  MapsLine line;
  while (maps.next(line))
    if (line.start <= sp && sp < line.end) {
      this_thread.stack_high = line.end;
      this_thread.stack_low =
          line.is_stack() && line.start > kGrowth ? line.start - kGrowth : line.start;
      remember_stack({this_thread.stack_low, this_thread.stack_high, thread_number()});
      return true;
    }
  return false;
}

// Another stack, such as a coroutine's: programs switch between thousands, so it is only asked how much is
// mapped from here on.
void find_other_stack(uint64_t sp) {
  constexpr uint64_t kPage = 4096, kMostPages = 64;
  unsigned char resident[kMostPages];
  uint64_t page = sp & ~(kPage - 1), pages = kMostPages;
  while (pages > 1 &&
         sys::failed(sys::call(SYS_mincore, (long)page, (long)(pages * kPage), (long)resident)))
    pages /= 2;
  this_thread.other_low = page;
  this_thread.other_high = page + pages * kPage;
}

// How to leave a frame, in 64 bits:
//   bit 0       there is a rule        bits 16-31  where rbp was saved, from the frame address
//   bit 1       by frame pointer       bits 32-63  offset of the frame address
//   bit 2       from rbp, else rsp
//   bit 3       rbp was saved
enum : uint64_t { kKnown = 1, kFramePointer = 2, kFromRbp = 4, kRbpSaved = 8 };

// A direct-mapped cache from pc to rule. The key is stored xored with the value: a pair torn by two
// threads matches nothing.
struct {
  struct {
    uint64_t key_and_value, value;
  } slots[4096];
} constinit cache = {};

uint64_t look_up(uint64_t pc) {
  uint32_t module = runtime.modules.find(pc);
  if (!module) {
    runtime.modules.refresh();
    module = runtime.modules.find(pc);
  }
  if (!module)
    return 0;
  const Module &m = runtime.modules.get(module);
  FrameRule rule = find_frame_rule(m.frame_header, pc - 1);
  if (!rule.known) // built without unwind tables; assay-cc keeps frame pointers
    return m.sites ? (uint64_t)(kKnown | kFramePointer) : 0;
  if (rule.from_rbp && rule.cfa_offset == 16 && rule.rbp_saved && rule.rbp_offset == -16)
    return kKnown | kFramePointer;
  return kKnown | (rule.from_rbp ? kFromRbp : 0) | (rule.rbp_saved ? kRbpSaved : 0) |
         (uint64_t)(uint16_t)rule.rbp_offset << 16 | (uint64_t)(uint32_t)rule.cfa_offset << 32;
}

uint64_t rule_at(uint64_t pc) {
  auto &slot = cache.slots[(pc * kHashFactor) >> 52];
  uint64_t value = __atomic_load_n(&slot.value, __ATOMIC_RELAXED);
  if ((__atomic_load_n(&slot.key_and_value, __ATOMIC_RELAXED) ^ value) == pc)
    return value;
  value = look_up(pc);
  __atomic_store_n(&slot.value, value, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.key_and_value, pc ^ value, __ATOMIC_RELAXED);
  return value;
}

constexpr size_t kMostFolds = 1 << 16; // frames of a recursion that are walked

bool contains(const Stack &stack, uint64_t pc) {
  for (uint32_t i = 0; i < stack.depth; i++)
    if (stack.pcs[i] == pc)
      return true;
  return false;
}

} // namespace

uint64_t find_end_of_stack(uint64_t sp) {
  if (this_thread.stack_high == 0)
    return find_own_stack(sp) ? this_thread.stack_high : 0;
  if (sp < this_thread.other_low || sp >= this_thread.other_high)
    find_other_stack(sp);
  return this_thread.other_high;
}

void unwind(const void *frame, size_t limit, bool folded, Stack &out, StackReads *reads) {
  uint64_t rbp = (uint64_t)frame;
  out.depth = 0;
  out.cut = false;
  out.hash = 0;
  const uint64_t end = end_of_stack(rbp);
  if (!end)
    return;
  const uint64_t last = end - 16;
  auto load = [&](uint64_t at) {
    uint64_t value = *(const uint64_t *)at;
    if (reads)
      reads->add(at, value);
    return value;
  };
  // The interposed function's own frame is ours, so it has a frame pointer.
  uint64_t rsp = rbp, rule = kKnown | kFramePointer;
  size_t folds = 0;
  for (;;) {
    uint64_t frame_address; // of the frame being left: the return address lies below it
    if (rule & kFramePointer) {
      if (rbp < rsp || rbp > last || rbp % 8)
        return;
      frame_address = rbp + 16;
      rbp = load(rbp);
    } else {
      frame_address = (rule & kFromRbp ? rbp : rsp) + (uint64_t)(int64_t)(int32_t)(rule >> 32);
      if (frame_address <= rsp || frame_address > last + 16 || frame_address % 8)
        return;
      uint64_t saved_at = frame_address + (uint64_t)(int64_t)(int16_t)(rule >> 16);
      if (rule & kRbpSaved) {
        if (saved_at < rsp || saved_at > last + 8)
          return;
        rbp = load(saved_at);
      }
    }
    uint64_t pc = load(frame_address - 8);
    if (pc < 4096)
      return;
    if (!folded || !contains(out, pc)) {
      if (out.depth == limit) {
        out.cut = true;
        return;
      }
      out.pcs[out.depth++] = pc;
      out.hash = (out.hash ^ pc) * kHashFactor;
      out.hash ^= out.hash >> 29;
    } else if (++folds > kMostFolds) {
      out.cut = true;
      return;
    }
    rsp = frame_address;
    rule = rule_at(pc);
    if (!(rule & kKnown))
      return;
  }
}

uint64_t hash_of_frames(const void *frame, uint64_t end) {
  uint64_t rbp = (uint64_t)frame, rsp = rbp, hash = rbp;
  for (int i = 0; i < kHashedFrames && rbp >= rsp && rbp + 16 <= end && rbp % 8 == 0; i++) {
    const uint64_t *words = (const uint64_t *)rbp;
    hash = (hash ^ words[1]) * kHashFactor;
    if (words[1] < 4096 || !(rule_at(words[1]) & kFramePointer))
      break;
    rsp = rbp + 16;
    rbp = words[0];
  }
  return hash;
}

void note_own_stack() {
  end_of_stack((uint64_t)__builtin_frame_address(0));
}

uint32_t known_stacks() {
  return __atomic_load_n(&stacks.count, __ATOMIC_ACQUIRE);
}

StackBounds known_stack(uint32_t number) {
  return stacks.bounds[number];
}

void forget_stacks_holder() {
  give_back_all_memos();
  stacks.lock.reset();
}

void forget_frame_rules() {
  forget_memos();
  for (auto &slot : cache.slots)
    __atomic_store_n(&slot.key_and_value, 0, __ATOMIC_RELAXED);
}

} // namespace assay
