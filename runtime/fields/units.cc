// A unit's counters are an array of its module. When the module comes, the runtime gives the unit a
// place in the blocks instead, and says so in the unit's variable, which all its code reads; what
// was counted before is taken along.
//
// What was counted is the sum over the blocks. Each flush writes the difference to what was written
// before. An array of the last sums costs as much memory as one more thread.

#include "runtime/fields/units.h"

#include "abi/fields.h"
#include "abi/lines.h"
#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/sites.h"
#include "runtime/fields/asking.h"
#include "runtime/fields/threads.h"

namespace assay::fields {
namespace {

constexpr size_t kMaxUnits = 1 << 18;
constexpr uint64_t kAlign = 64;

struct Unit {
  ModuleId module; // kNoModule: it is gone, its place is free
  uint32_t site;
  uint64_t offset; // in each block, bytes
  uint64_t count;
  UnitEntry entry;
  const uint32_t *index; // of its stretches; made by the first thread that samples there
};

struct {
  SpinLock lock;
  GrowingArray<Unit, kMaxUnits> all;
  size_t count;
  uint64_t used;    // bytes of a block
  uint8_t *written; // the sums that were written, as a block
  uint8_t *dropped; // the sums at the last reset; null if there was none
  uint8_t *sums;    // while they are made
} constinit units = {};

uint64_t *counters_in(const uint8_t *block, uint64_t offset) {
  return (uint64_t *)(block + offset);
}

// A place for so many counters: one that a gone unit of the same length has left, or a new one.
Unit *place_for(uint64_t count) {
  for (size_t i = 0; i < units.count; i++)
    if (units.all[i].module == kNoModule && units.all[i].count == count)
      return &units.all[i];
  uint64_t bytes = (count * 8 + kAlign - 1) / kAlign * kAlign;
  if (units.count == kMaxUnits || units.used + bytes > kBlockBytes)
    return nullptr;
  Unit *unit = &units.all[units.count++];
  *unit = {kNoModule, 0, units.used, count, {}, nullptr};
  __atomic_store_n(&units.used, units.used + bytes, __ATOMIC_RELEASE);
  return unit;
}

AssayFieldsUnit *variable_of(const char *body) {
  AssaySiteFields head;
  __builtin_memcpy(&head, body, sizeof head);
  return (AssayFieldsUnit *)(body + offsetof(AssaySiteFields, unit) + head.unit);
}

// Threads of which nothing is known here may run the unit's code already.
void move_counters(AssayFieldsUnit &variable, const void *first) {
  __atomic_store_n(&variable.counters, (uint64_t)first, __ATOMIC_RELAXED);
  __atomic_store_n(&variable.distances, ~0ULL, __ATOMIC_RELEASE);
}

void forget_unit(const char *body) {
  move_counters(*variable_of(body), nowhere());
}

void add_unit(ModuleId module, uint32_t site, const char *body, const char *end) {
  AssaySiteFields head;
  __builtin_memcpy(&head, body, sizeof head);
  auto *own = (uint64_t *)(body + head.counters);
  AssayFieldsUnit *variable = variable_of(body);
  Unit *unit = place_for(head.count);
  if (!unit) {
    forget_unit(body);
    count_loss(ASSAY_LOSS_field_units, 1);
    return;
  }
  unit->entry = {(const uint8_t *)body, (const uint8_t *)end};
  unit->index = nullptr;
  unit->site = site;
  unit->module = module;
  uint64_t *first = counters_in(first_block(), unit->offset);
  variable->number = (uint32_t)(unit - &units.all[0]) + 1;
  move_counters(*variable, first);
  for (uint64_t i = 0; i < unit->count; i++)
    first[i] += own[i];
  if (variable->asks)
    add_asking(variable->asks);
}

struct Adding {
  uint64_t offset, count;
};

void add_block(const uint8_t *block, void *data) {
  auto *adding = (Adding *)data;
  const uint64_t *from = counters_in(block, adding->offset);
  uint64_t *to = counters_in(units.sums, adding->offset);
  for (uint64_t i = 0; i < adding->count; i++)
    to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void sum_up(const Unit &unit) {
  Adding adding = {unit.offset, unit.count};
  __builtin_memset(counters_in(units.sums, unit.offset), 0, unit.count * 8);
  add_block(first_block(), &adding);
  each_block(add_block, &adding);
}

// A record of the unit's counts, as numbers.
class CountsRecord {
public:
  CountsRecord(ProfileFile &file, const Unit &unit) : file_(file), unit_(unit) {}
  ~CountsRecord() { write(); }

  void add(uint64_t index, uint64_t count) {
    if (kBytes - used_ < 2 * ASSAY_NUMBER_BYTES)
      write();
    uint8_t *at = assay_put_number(bytes_ + used_, index - next_);
    used_ = (size_t)(assay_put_number(at, count) - bytes_);
    next_ = index + 1;
  }

private:
  void write() {
    if (used_)
      file_.append(ASSAY_RECORD_FieldCounts, AssayFieldCounts{(uint32_t)unit_.module, unit_.site},
                   bytes_, used_);
    used_ = 0;
    next_ = 0;
  }
  static constexpr size_t kBytes = 2048;
  ProfileFile &file_;
  const Unit &unit_;
  uint64_t next_ = 0;
  size_t used_ = 0;
  uint8_t bytes_[kBytes];
};

// Under the lock.
void write_counts_of(const Unit &unit) {
  sum_up(unit);
  const uint64_t *now = counters_in(units.sums, unit.offset);
  uint64_t *written = counters_in(units.written, unit.offset);
  CountsRecord record(runtime.file, unit);
  for (uint64_t i = 0; i < unit.count; i++)
    if (now[i] != written[i]) {
      record.add(i, now[i] - written[i]);
      written[i] = now[i];
    }
}

void clear_block(const uint8_t *block, void *data) {
  auto *unit = (const Unit *)data;
  __builtin_memset(counters_in(block, unit->offset), 0, unit->count * 8);
}

bool create_units() {
  if (units.written)
    return true;
  units.written = (uint8_t *)reserve(kBlockBytes);
  units.sums = (uint8_t *)reserve(kBlockBytes);
  return units.written && units.sums && units.all.create() && create_blocks() && create_asking();
}

} // namespace

void add_units(const ModuleSites &sites) {
  Locked locked(units.lock);
  if (!create_units()) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return;
  }
  const bool is_first = units.count == 0;
  each_site(sites.sites, sites.size,
            [&](uint32_t kind, uint32_t offset, const char *body, const char *end) {
              if (kind != ASSAY_SITE_FIELDS)
                return;
              if (sites.module != kNoModule)
                add_unit(sites.module, offset, body, end);
              else
                forget_unit(body);
            });
  if (is_first && units.count)
    begin_round(1);
}

void end_units(const ModuleSites &sites) {
  const uint32_t *last = nullptr; // units of a linked module have one
  each_site(sites.sites, sites.size, [&](uint32_t kind, uint32_t, const char *body, const char *) {
    if (kind != ASSAY_SITE_FIELDS)
      return;
    const uint32_t *asks = variable_of(body)->asks;
    if (asks && asks != last)
      drop_asking(asks);
    last = asks;
  });
}

const uint32_t *find_unit(uint32_t number, UnitEntry &entry) {
  if (number == 0 || number > __atomic_load_n(&units.count, __ATOMIC_ACQUIRE))
    return nullptr;
  Unit &unit = units.all[number - 1];
  if (unit.module == kNoModule)
    return nullptr;
  const uint32_t *index = __atomic_load_n(&unit.index, __ATOMIC_ACQUIRE);
  entry = unit.entry;
  if (!index) {
    index = index_stretches(entry);
    __atomic_store_n(&unit.index, index, __ATOMIC_RELEASE);
  }
  return index;
}

void remove_units(ModuleId module) {
  Locked locked(units.lock);
  for (size_t i = 0; i < units.count; i++) {
    Unit &unit = units.all[i];
    if (unit.module != module)
      continue;
    write_counts_of(unit);
    clear_block(first_block(), &unit);
    clear_block(units.written, &unit);
    if (units.dropped)
      clear_block(units.dropped, &unit);
    each_block(clear_block, &unit);
    unit.module = kNoModule;
  }
}

void write_counts() {
  Locked locked(units.lock);
  for (size_t i = 0; i < units.count; i++)
    if (units.all[i].module != kNoModule)
      write_counts_of(units.all[i]);
}

void drop_counts() {
  Locked locked(units.lock);
  if (!units.dropped)
    units.dropped = (uint8_t *)reserve(kBlockBytes);
  for (size_t i = 0; i < units.count; i++) {
    const Unit &unit = units.all[i];
    sum_up(unit);
    const uint64_t *now = counters_in(units.sums, unit.offset);
    __builtin_memcpy(counters_in(units.written, unit.offset), now, unit.count * 8);
    if (units.dropped)
      __builtin_memcpy(counters_in(units.dropped, unit.offset), now, unit.count * 8);
  }
}

uint64_t used_bytes() {
  return units.used;
}

void reset_units_in_child() {
  units.lock.reset();
  reset_asking_in_child();
  reset_blocks_in_child(units.used);
  if (units.written)
    empty_span(units.written, units.used);
  if (units.dropped)
    empty_span(units.dropped, units.used);
}

bool is_known_unit(ModuleId module, uint32_t site) {
  for (size_t i = 0; i < units.count; i++)
    if (units.all[i].module == module && units.all[i].site == site)
      return true;
  return false;
}

void write_all_counts(ProfileFile &to) {
  Locked locked(units.lock);
  for (size_t u = 0; u < units.count; u++) {
    const Unit &unit = units.all[u];
    if (unit.module == kNoModule)
      continue;
    const uint64_t *written = counters_in(units.written, unit.offset);
    const uint64_t *dropped = units.dropped ? counters_in(units.dropped, unit.offset) : nullptr;
    CountsRecord record(to, unit);
    for (uint64_t i = 0; i < unit.count; i++)
      if (uint64_t count = written[i] - (dropped ? dropped[i] : 0))
        record.add(i, count);
  }
}

} // namespace assay::fields
