// To ask is one instruction, as each module has a variable of its own. It is written on the helper
// thread and on those that report, so it is dropped by the module's last destructor: that comes
// whoever unloads the module, also where dlclose is not seen.

#include "runtime/fields/asking.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"

namespace assay::fields {
namespace {

constexpr size_t kMaxModules = 1 << 16;

struct {
  SpinLock lock;
  GrowingArray<uint32_t *, kMaxModules> all; // null: free
  size_t count;
  bool reports;
} constinit asking = {};

void write(uint32_t *asks, bool reports) {
  __atomic_store_n(asks, (uint32_t)reports, __ATOMIC_RELEASE);
}

// Under the lock. The last ones first: units of a module come together.
size_t find(const uint32_t *asks) {
  for (size_t i = asking.count; i-- > 0;)
    if (asking.all[i] == asks)
      return i;
  return asking.count;
}

} // namespace

bool create_asking() {
  return asking.all.exists() || asking.all.create();
}

void add_asking(uint32_t *asks) {
  Locked locked(asking.lock);
  if (find(asks) < asking.count)
    return;
  const size_t room = find(nullptr);
  if (room == kMaxModules) {
    count_loss(ASSAY_LOSS_field_units, 1);
    return;
  }
  if (room == asking.count)
    asking.count++;
  asking.all[room] = asks;
  write(asks, asking.reports);
}

void drop_asking(const uint32_t *asks) {
  Locked locked(asking.lock);
  if (const size_t i = find(asks); i < asking.count)
    asking.all[i] = nullptr;
}

void let_code_report(bool reports) {
  Locked locked(asking.lock);
  asking.reports = reports;
  for (size_t i = 0; i < asking.count; i++)
    if (asking.all[i])
      write(asking.all[i], reports);
}

void reset_asking_in_child() {
  asking.lock.reset();
  let_code_report(false);
}

} // namespace assay::fields
