// Loss is data: an event that could not be recorded is at least counted.

#include "runtime/core/system/losses.h"

#include "runtime/core/system/message.h"

namespace assay {
namespace {

constexpr int kKinds = 64;

struct {
  uint64_t counts[kKinds];
  uint8_t said[kKinds];
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
  if (__atomic_exchange_n(&losses.said[kind], 1, __ATOMIC_RELAXED))
    return;
  switch (kind) {
#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  case number: say(what "; " remedy); break;
#include "abi/losses.def"
  }
}

uint64_t take_loss(AssayLossKind kind) {
  return __atomic_exchange_n(&losses.counts[kind], 0, __ATOMIC_RELAXED);
}

} // namespace assay
