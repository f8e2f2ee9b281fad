// Loss is data: an event that could not be recorded is at least counted. What was said is in a page that children of a
// fork share: of a thousand on a full disk, one says so.

#include "runtime/core/system/losses.h"

#include "runtime/core/system/message.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

constexpr int kKinds = 64;

struct {
  uint64_t counts[kKinds];
  uint8_t said_here[kKinds];
  uint8_t *said; // shared; null: said_here
} constinit losses = {};

#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  static_assert(number < kKinds, "too many kinds of loss");
#include "abi/losses.def"

} // namespace

void count_loss_quietly(AssayLossKind kind, uint64_t count) {
  __atomic_fetch_add(&losses.counts[kind], count, __ATOMIC_RELAXED);
}

void count_loss(AssayLossKind kind, uint64_t count) {
  count_loss_quietly(kind, count);
  uint8_t *said = losses.said ? losses.said : losses.said_here;
  if (__atomic_exchange_n(&said[kind], 1, __ATOMIC_RELAXED))
    return;
  switch (kind) {
#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  case number: say(what "; " remedy); break;
#include "abi/losses.def"
  }
}

void share_losses_said() {
  long page = sys::map(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  if (!sys::failed(page))
    losses.said = (uint8_t *)page;
}

uint64_t take_loss(AssayLossKind kind) {
  return __atomic_exchange_n(&losses.counts[kind], 0, __ATOMIC_RELAXED);
}

} // namespace assay
