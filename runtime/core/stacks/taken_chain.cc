// A chain takes more than a quarter of a megabyte, so not every thread has its own; but one that
// finds its own frames again unwinds little.

#include "runtime/core/stacks/taken_chain.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"

namespace assay {
namespace {

constexpr uint32_t kChains = 64;

struct {
  CallChain *chains;
  uint32_t taken_by[kChains]; // threads; 0: none
} constinit pool = {};

} // namespace

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
