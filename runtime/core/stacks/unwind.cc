// A frame with a frame pointer is two loads. But not all code keeps one: assay-cc's code does; libstdc++, qsort
// and most libraries use rbp for anything, and a program may be linked from objects of both kinds:
// following rbp there would swallow the user's frames behind it. So the rule for each pc comes from
// .eh_frame, once, and is then cached; most say "by frame pointer".
//
// Each step must stay inside the current stack and go outwards, which makes a wrong rule end the
// chain early but never read beyond the stack. The bounds of a thread's stack come from the maps file,
// once for each thread.

#include "runtime/core/stacks/unwind.h"

#include <dlfcn.h>

#include "runtime/core/runtime.h"
#include "runtime/core/stacks/call_chain.h"
#include "runtime/core/stacks/cfi.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/proc_maps.h"
#include "runtime/core/system/thread.h"

extern "C" __attribute__((weak)) decltype(_dl_find_object) _dl_find_object; // glibc 2.35

namespace assay {
namespace {

constexpr uint32_t kMaxStacks = 4096;

struct {
  SpinLock lock;
  uint32_t count;
  StackBounds bounds[kMaxStacks];
} constinit stacks = {};

// Under nobody's lock; a thread comes here once.
void remember_stack(StackBounds bounds) {
  Locked locked(stacks.lock);
  for (uint32_t i = 0; i < stacks.count; i++)
    if (stacks.bounds[i].high == bounds.high)
      return;
  if (stacks.count < kMaxStacks) {
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
// mapped from here on. So it is of all stacks where the maps file cannot be read.
void find_other_stack(uint64_t sp) {
  constexpr uint64_t kMaxPages = 64;
  unsigned char resident[kMaxPages];
  uint64_t page = page_down(sp), pages = kMaxPages;
  while (pages > 1 &&
         sys::failed(sys::call(SYS_mincore, (long)page, (long)(pages * kPage), (long)resident)))
    pages /= 2;
  this_thread.other_low = page;
  this_thread.other_high = page + pages * kPage;
}

// A direct-mapped cache from pc to rule. The key is stored xored with the values: an entry torn by two
// threads matches nothing.
struct {
  struct {
    uint64_t key, bits, function;
  } slots[4096];
} constinit cache = {};

// The module at pc now, with what may be read of it; it begins at 0 where there is none. Our own
// map may be old where a dlclose was not seen. The loader knows; as the C++ runtime does, it is
// asked without locks, in any context.
Module module_at(uint64_t pc) {
  const bool asks = _dl_find_object != nullptr;
  dl_find_object loaded = {};
  if (asks && _dl_find_object((void *)pc, &loaded) != 0)
    return {};
  const auto frame_header = (uint64_t)loaded.dlfo_eh_frame; // 0 if there is none
  ModuleId module = runtime.modules.find(pc);
  if (module == kNoModule ||
      (frame_header && frame_header != runtime.modules.get(module).frame_header)) {
    runtime.modules.refresh();
    module = runtime.modules.find(pc);
  }
  if (module == kNoModule)
    return {};
  Module m = runtime.modules.get(module);
  constexpr ModuleId kFirst{1}; // a static program, of which the loader does not say it; it stays
  if (asks && (frame_header || module != kFirst))
    m.frame_header = frame_header;
  return m;
}

LeaveRule look_up(uint64_t pc) {
  const Module m = module_at(pc);
  if (!m.start)
    return {0, pc};
  FrameRule rule = find_frame_rule(m.frame_header, pc - 1);
  if (!rule.known) // built without unwind tables; assay-cc keeps frame pointers
    return {m.sites ? (uint64_t)(kRuleKnown | kFramePointer) : 0,
            rule.function ? rule.function : pc};
  if (rule.from_rbp && rule.cfa_offset == 16 && rule.rbp_saved && rule.rbp_offset == -16)
    return {kRuleKnown | kFramePointer, rule.function};
  return {kRuleKnown | (rule.from_rbp ? kFromRbp : 0) | (rule.rbp_saved ? kRbpSaved : 0) |
              (uint64_t)(uint16_t)rule.rbp_offset << 16 | (uint64_t)(uint32_t)rule.cfa_offset << 32,
          rule.function};
}

constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15ULL;

} // namespace

LeaveRule leave_rule_at(uint64_t pc) {
  auto &slot = cache.slots[(pc * kHashFactor) >> 52];
  LeaveRule rule = {__atomic_load_n(&slot.bits, __ATOMIC_RELAXED),
                    __atomic_load_n(&slot.function, __ATOMIC_RELAXED)};
  if ((__atomic_load_n(&slot.key, __ATOMIC_RELAXED) ^ rule.bits ^ rule.function) == pc)
    return rule;
  rule = look_up(pc);
  __atomic_store_n(&slot.bits, rule.bits, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.function, rule.function, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.key, pc ^ rule.bits ^ rule.function, __ATOMIC_RELAXED);
  return rule;
}

uint64_t find_end_of_stack(uint64_t sp) {
  if (sp < this_thread.other_low || sp >= this_thread.other_high) {
    if (this_thread.stack_high == 0 && find_own_stack(sp))
      return this_thread.stack_high;
    find_other_stack(sp); // also where the maps file cannot be read: not for each object
  }
  return this_thread.other_high;
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

static void reset_stacks_in_child() {
  stacks.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_stacks_in_child);

void invalidate_leave_rules() {
  for (auto &slot : cache.slots)
    __atomic_store_n(&slot.key, 0, __ATOMIC_RELAXED);
  invalidate_call_chains(); // last: chains keep what they find here
}

} // namespace assay
