// What instrumented code calls while windows are sampled. Reports are left out in signal handlers that interrupt the runtime.

#include "abi/fields.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/runtime.h"
#include "runtime/fields/threads.h"
#include "runtime/fields/units.h"

using namespace assay;
using namespace assay::fields;

extern "C" __attribute__((preserve_most)) void __assay_fields_sample(AssayStretchReport report) {
  ThreadBlock &thread = this_block();
  if (!may_record() || !joins_round(thread))
    return;
  if (__atomic_exchange_n(&thread.in_hook, 1, __ATOMIC_ACQUIRE))
    return; // threads that the runtime does not see share a window
  ReentrancyGuard busy;
  UnitEntry entry;
  for (uint64_t i = report.known; i < ASSAY_MAX_BASES; i++)
    report.bases[i] = nullptr;
  if (const uint32_t *index = find_unit(report.unit, entry))
    if (add_stretch(*thread.window, entry, index, report.stretch, report.bases))
      leave_round(thread);
  __atomic_store_n(&thread.in_hook, 0, __ATOMIC_RELEASE);
}
