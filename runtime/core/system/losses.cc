// Loss is data: an event that could not be recorded is at least counted. What was said is in a page that children of a
// fork share (of a thousand on a full disk, one says so), and in it are the losses of children that have no profile.

#include "runtime/core/system/losses.h"

#include "runtime/core/system/message.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

struct Shared {
  uint64_t counts[ASSAY_LOSS_KINDS]; // whichever process flushes next takes them
  uint8_t said[ASSAY_LOSS_KINDS];
};

constinit uint64_t counts[ASSAY_LOSS_KINDS] = {};
constinit Shared alone = {}; // until share_losses(), and where no page can be shared
constinit Shared *shared = &alone;

} // namespace

void count_loss_quietly(AssayLossKind kind, uint64_t count) {
  __atomic_fetch_add(&counts[kind], count, __ATOMIC_RELAXED);
}

void count_loss_of_child(AssayLossKind kind, uint64_t count) {
  __atomic_fetch_add(&shared->counts[kind], count, __ATOMIC_RELAXED);
}

void say_loss(AssayLossKind kind) {
  if (__atomic_exchange_n(&shared->said[kind], 1, __ATOMIC_RELAXED))
    return;
  switch (kind) {
#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  case number: say(what "; " remedy); break;
#include "abi/losses.def"
  case ASSAY_LOSS_KINDS: break; // none
  }
}

void count_loss(AssayLossKind kind, uint64_t count) {
  count_loss_quietly(kind, count);
  say_loss(kind);
}

void share_losses() {
  long page = sys::map(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  if (!sys::failed(page))
    shared = (Shared *)page;
}

uint64_t take_loss(AssayLossKind kind) {
  return __atomic_exchange_n(&counts[kind], 0, __ATOMIC_RELAXED) +
         __atomic_exchange_n(&shared->counts[kind], 0, __ATOMIC_RELAXED);
}

} // namespace assay
