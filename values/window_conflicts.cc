// When an address is known cannot be seen in addresses. But a sample's instructions are decoded, so
// registers are followed through it: each has the youngest load that it depends on, and so has each
// address. What was computed before the sample counts as known early. Cycles were refused: the
// interpreter has none, and which load is slow differs from run to run; which address waits for a
// load does not.
//
// A sample says which instructions it has executed only of those that have a value. The others are
// found as a processor does: by what follows, and by the targets of branches and direct jumps.
// Where that fails (indirect jumps, returns), nothing is known of registers.

#include "values/window_conflicts.h"

#include "abi/records.h"

#include <algorithm>

namespace values {
namespace {

// How far a load looks back for stores: about what a processor holds in its store buffer.
constexpr size_t kStoresInFlight = 56;

bool is_branch(const assay_sampled_value &value) {
  return value.kind == ASSAY_VALUE_branch;
}

} // namespace

void WindowConflicts::load(const assay_sampled_value &value, unsigned known,
                           const Found &found) const {
  const uint64_t begin = value.value, end = begin + value.detail;
  bool has_alias = false;
  for (size_t back = 0; back < std::min(stores_.size(), kStoresInFlight); back++) {
    const Store &store = stores_[stores_.size() - 1 - back];
    if (begin < store.address + store.bytes && store.address < end) {
      if (begin < store.address || end > store.address + store.bytes)
        found(store.where, value.where, ASSAY_CONFLICT_FORWARDING);
      if (store.known > known)
        found(store.where, value.where, ASSAY_CONFLICT_ORDER);
      return;
    }
    const uint64_t low = begin & 4095, store_low = store.address & 4095;
    if (!has_alias && low < store_low + store.bytes && store_low < low + value.detail) {
      found(store.where, value.where, ASSAY_CONFLICT_ALIAS);
      has_alias = true;
    }
  }
}

// The accesses among `values` come in the order of the micro-ops that make them.
void WindowConflicts::instruction(const InstructionFlow &flow, unsigned step,
                                  std::span<const assay_sampled_value> values, const Found &found) {
  auto from = [&](uint16_t reg) { return reg < from_.size() ? from_[reg] : 0; };
  size_t next = 0;
  auto access = [&](unsigned kind) -> const assay_sampled_value * {
    while (next < values.size() && values[next].kind != kind)
      next++;
    return next < values.size() ? &values[next++] : nullptr;
  };
  for (const FlowStep &each : flow.steps) {
    unsigned known = 0;
    for (uint16_t reg : each.from)
      known = std::max(known, from(reg));
    if (each.is_load || each.is_store) {
      const auto *value =
          access(each.is_load ? ASSAY_VALUE_load_address : ASSAY_VALUE_store_address);
      if (value && each.is_load)
        load(*value, known, found);
      else if (value)
        stores_.push_back({value->value, value->detail, value->where, known});
    }
    if (!each.is_store && each.to < from_.size())
      from_[each.to] = each.is_load ? step + 1 : known;
  }
}

void WindowConflicts::find(const assay_sample &sample, std::span<const assay_sampled_value> values,
                           const Found &found) {
  stores_.clear();
  from_.fill(0);
  uint32_t expected = sample.skipped == 0 ? sample.start : 0;
  size_t next = 0;
  for (unsigned step = 0; step < sample.instructions; step++) {
    const size_t first = next;
    while (next < values.size() && values[next].step == step)
      next++;
    const auto of_step = values.subspan(first, next - first);
    const uint32_t where = of_step.empty() ? expected : of_step.front().where;
    if (where == 0 || where != expected)
      from_.fill(0);
    expected = 0;
    if (where == 0)
      continue;
    const InstructionFlow &flow = flow_.at(where);
    if (flow.drains_stores)
      stores_.clear();
    instruction(flow, step, of_step, found);
    if (flow.drains_stores)
      stores_.clear();
    const auto branch = std::find_if(of_step.begin(), of_step.end(), is_branch);
    if (!flow.branches)
      expected = flow.jumps ? flow.target : flow.next;
    else if (branch != of_step.end())
      expected = branch->value ? flow.target : flow.next;
  }
}

} // namespace values
