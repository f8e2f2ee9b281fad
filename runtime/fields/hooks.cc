// What instrumented code calls where a counter is negative, or where a loop has run for a while. The count always goes where the
// thread counts; the rest is left out in signal handlers that interrupt the runtime.

#include "runtime/core/objects/objects.h"
#include "runtime/core/runtime.h"
#include "runtime/fields/threads.h"
#include "runtime/fields/units.h"

using namespace assay;
using namespace assay::fields;

namespace {

constexpr uint64_t kPiece = 4096; // executions in a loop until the next call

// The counter lies there in each block.
void report(ThreadBlock &thread, uint64_t offset, const void *const *bases) {
  if (!may_record() || !is_sampling(thread) || !bases[0])
    return;
  if (__atomic_exchange_n(&thread.in_hook, 1, __ATOMIC_ACQUIRE))
    return; // threads that the runtime does not see share a window
  ReentrancyGuard busy;
  UnitEntry entry;
  uint64_t counter = 0;
  const uint32_t *index = find_counter(offset, entry, counter);
  if (!index || add_stretch(*thread.window, entry, index, counter, bases))
    end_window(thread);
  __atomic_store_n(&thread.in_hook, 0, __ATOMIC_RELEASE);
}

void add(const ThreadBlock &thread, uint64_t offset, uint64_t executions) {
  *(uint64_t *)(first_block() + thread.own + offset) += executions;
}

} // namespace

extern "C" {

__attribute__((preserve_most)) void __assay_fields_sample(const uint64_t *counter, const void *a,
                                                          const void *b, const void *c,
                                                          const void *d) {
  uint64_t offset = 0;
  if (!find_in_sampling_block(counter, offset))
    return;
  ThreadBlock &thread = this_block();
  add(thread, offset, 1);
  const void *bases[] = {a, b, c, d};
  report(thread, offset, bases);
}

__attribute__((preserve_most)) uint64_t __assay_fields_piece(const uint64_t *counter,
                                                             uint64_t executions, const void *a,
                                                             const void *b, const void *c,
                                                             const void *d) {
  uint64_t offset = (uint64_t)counter - (uint64_t)first_block();
  if (!first_block() || offset >= kBlockBytes) { // the unit is not known: its own counter
    *(uint64_t *)counter += executions;
    return kPiece;
  }
  ThreadBlock &thread = this_block();
  add(thread, offset, executions);
  const void *bases[] = {a, b, c, d};
  report(thread, offset, bases);
  return is_sampling(thread) ? 1 : kPiece;
}
}
