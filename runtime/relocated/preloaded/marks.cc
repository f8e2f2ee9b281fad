// Marks of the program (assay/annotate.h) between which it is recorded. The tool names them; who
// makes one opens or closes the gate of all threads.

#include "runtime/core/system/export.h"
#include "runtime/relocated/relocated.h"

namespace assay::relocated {
namespace {

bool is_name(const char *wanted, const char *name) {
  uint32_t i = 0;
  for (; i < ASSAY_RING_MARK_BYTES && wanted[i] && wanted[i] == name[i]; i++) {
  }
  return i > 0 && i < ASSAY_RING_MARK_BYTES && wanted[i] == name[i];
}

// False if it was as wanted.
bool set_gate(bool open) {
  uint32_t gate = __atomic_load_n(&ring->gate, __ATOMIC_ACQUIRE);
  while ((bool)assay_gate_is_open(gate) != open)
    if (__atomic_compare_exchange_n(&ring->gate, &gate, assay_gate_switched(gate), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return true;
  return false;
}

} // namespace
} // namespace assay::relocated

using namespace assay::relocated;

// One mark may do both, in turn.
ASSAY_EXPORT void __assay_mark(const char *name) {
  if (!ring || !name)
    return;
  if ((is_name(ring->stop_mark, name) && set_gate(false)) ||
      (is_name(ring->start_mark, name) && set_gate(true)))
    follow_gate();
}
