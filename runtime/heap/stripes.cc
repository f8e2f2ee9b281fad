// A thread gets its stripe before it runs anything of the program's. Whether the last owner of a
// stripe still lives is asked of the kernel: threads end in many ways, most of them unseen.

#include "runtime/heap/stripes.h"

#include "runtime/core/runtime.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/thread.h"
#include "runtime/heap/counters.h"

namespace assay::heap {

thread_local constinit uint64_t own_stripe = 0;
constinit uint32_t used_stripes = 1;

namespace {

constexpr int kSetGs = 0x1001; // ARCH_SET_GS

// All counters of every stripe but the first, save the low windows of some; and of odd addresses,
// which are not accounted for but must not fault.
constexpr uint64_t kBegin = ASSAY_SHADOW_OF_(ASSAY_HIGH_END, ASSAY_WORDS_SHIFT, ASSAY_WORDS_BASE);
constexpr uint64_t kEnd = ASSAY_HIGH_BEGIN;
constexpr uint64_t kUnlimitedSpan =
    ASSAY_STRIPE_END_(UNLIMITED, 0) - ASSAY_STRIPE_BEGIN_(UNLIMITED, 0);
constexpr uint64_t kLowSpan = ASSAY_STRIPE_END_(LOW, 0) - ASSAY_STRIPE_BEGIN_(LOW, 0);

struct {
  SpinLock lock;
  bool mapped, refused;
  bool unlimited;                // the program's mappings are those of an unlimited stack
  uint32_t owner[ASSAY_STRIPES]; // thread ids; 0: never had one
  uint32_t turn;
} constinit stripes = {};

// Calls f(begin, bytes) for each range that holds counters of stripes but the first.
template <typename F> void each_range(F f) {
  f(kBegin, kEnd - kBegin);
  for (int s = 1; s < ASSAY_STRIPES; s++)
    if (ASSAY_STRIPE_BEGIN_(LOW, s) < kBegin)
      f(ASSAY_STRIPE_BEGIN_(LOW, s), kLowSpan);
  for (int s = 1; stripes.unlimited && s < ASSAY_STRIPES; s++)
    if (ASSAY_STRIPE_BEGIN_(UNLIMITED, s) < kBegin)
      f(ASSAY_STRIPE_BEGIN_(UNLIMITED, s), kUnlimitedSpan);
}

bool map_stripes() {
  if (!stripes.mapped && !stripes.refused) {
    uint64_t here =
        (uint64_t)__builtin_frame_address(0); // on the stack of a thread that has just begun
    stripes.unlimited = here >= ASSAY_UNLIMITED_BEGIN && here < ASSAY_UNLIMITED_END;
    bool good = true;
    each_range(
        [&](uint64_t begin, uint64_t bytes) { good = good && reserve_span(begin, begin + bytes); });
    if (good)
      each_range([](uint64_t begin, uint64_t bytes) { note_own_span(begin, begin + bytes); });
    stripes.mapped = good;
    stripes.refused = !good;
  }
  return stripes.mapped;
}

// Under the lock.
uint32_t choose(uint32_t count) {
  for (uint32_t s = 1; s < count; s++)
    if (!stripes.owner[s] || !sys::thread_lives(runtime.pid, stripes.owner[s])) {
      stripes.owner[s] = sys::thread_id();
      return s;
    }
  return stripes.turn++ % count;
}

} // namespace

void take_stripe() {
  const uint64_t count = runtime.options.stripes;
  if (count < 2 || !runtime.instrumented || counters_are_elsewhere())
    return;
  Locked locked(stripes.lock);
  if (!map_stripes()) {
    count_loss(ASSAY_LOSS_one_stripe, 1);
    return;
  }
  uint32_t s = choose((uint32_t)count);
  if (s >= used_stripes)
    __atomic_store_n(&used_stripes, s + 1, __ATOMIC_RELEASE);
  if (!sys::failed(sys::call(SYS_arch_prctl, kSetGs, (long)ASSAY_STRIPE(s))))
    own_stripe = ASSAY_STRIPE(s);
}

void reset_stripes_in_child() {
  stripes.lock.reset();
  for (uint32_t &owner : stripes.owner)
    owner = 0;
  if (!stripes.mapped)
    return;
  each_range(
      [](uint64_t begin, uint64_t bytes) { sys::advise((void *)begin, bytes, MADV_DONTNEED); });
  for (int s = 1; s < ASSAY_STRIPES; s++)
    if (own_stripe == ASSAY_STRIPE(s))
      stripes.owner[s] = sys::thread_id();
}

} // namespace assay::heap
