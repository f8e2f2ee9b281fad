// What instrumented code calls while windows are sampled. Reports are left out in signal handlers
// that interrupt the runtime.

#include "abi/fields.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/runtime.h"
#include "runtime/fields/threads.h"
#include "runtime/fields/units.h"

using namespace assay;
using namespace assay::fields;

extern "C" __attribute__((preserve_most)) void
__assay_fields_sample(uint32_t unit, uint64_t report, const void *base0, const void *base1,
                      const void *base2, const void *base3) {
  ThreadBlock &thread = this_block();
  if (!may_record() || !joins_round(thread))
    return;
  if (__atomic_exchange_n(&thread.in_hook, 1, __ATOMIC_ACQUIRE))
    return; // threads that the runtime does not see share a window
  ReentrancyGuard busy;
  UnitEntry entry;
  const void *bases[ASSAY_MAX_BASES] = {base0, base1, base2, base3};
  for (size_t i = ASSAY_REPORTED_KNOWN(report); i < ASSAY_MAX_BASES; i++)
    bases[i] = nullptr;
  if (const uint32_t *index = find_unit(unit, entry))
    if (add_stretch(*thread.window, entry, index, ASSAY_REPORTED_STRETCH(report), bases))
      leave_round(thread);
  __atomic_store_n(&thread.in_hook, 0, __ATOMIC_RELEASE);
}
