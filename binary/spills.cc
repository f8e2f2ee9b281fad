// A slot of the stack is at a distance from where the stack pointer was when the routine began, or when it was
// aligned. Where exactly one store writes a slot, and every way to a load leads over it, the load yields what was
// stored last: no way leads from where the value is made anew to the load but over the store, or the first way there
// would not have led over it either.
//
// Refused: slots that several stores write. They would be variables with joins of their own, and most are those of code
// that was not optimised.

#include "binary/spills.h"

#include "binary/effects.h"
#include "binary/forms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace binary {
namespace {

struct Place {
  uint32_t base; // the value that the stack pointer had
  int64_t offset;
};

struct StackAccess {
  Place at;
  unsigned width;
  uint32_t node, place;
  ValueId value; // that is loaded or stored; not known(): in no general register
  int64_t end() const { return at.offset + width; }
};

class Search {
public:
  Search(const FlowGraph &graph, const Ssa &ssa, Forms &forms)
      : graph_(graph), ssa_(ssa), forms_(forms) {}

  std::unordered_map<uint32_t, ValueId> run() {
    for (uint32_t node : ssa_.dominators.order)
      if (ssa_.nodes[node].block != Node::kNoBlock && !look_at(node))
        return {};
    std::ranges::sort(stores_, is_before);
    std::unordered_map<uint32_t, ValueId> found;
    for (const StackAccess &load : loads_)
      if (const StackAccess *store = only_store_of(load))
        found.emplace(load.value.v, store->value);
    return found;
  }

private:
  static bool is_before(const StackAccess &a, const StackAccess &b) {
    return a.at.base != b.at.base ? a.at.base < b.at.base : a.at.offset < b.at.offset;
  }
  bool is_stack_pointer(ValueId value) const {
    return ssa_.values[value.v].variable == ASSAY_REG_RSP;
  }
  bool is_on_stack(ExprId form) const {
    bool found = false;
    if (form.known())
      forms_.definitions(form, [&](ValueId value) { found |= is_stack_pointer(value); });
    return found;
  }
  bool is_base(ValueId value) const {
    const Value &made = ssa_.values[value.v];
    return is_stack_pointer(value) &&
           (made.kind == ValueKind::entry ||
            (made.kind == ValueKind::micro_op && graph_.code.uops[made.uop].op == ASSAY_UOP_and));
  }
  // Where an address of the stack is.
  std::optional<Place> place_of(ExprId form) const {
    const Expressions &all = forms_.expressions();
    std::optional<Place> place;
    forms_.definitions(form, [&](ValueId value) {
      const auto distance = is_base(value) ? all.distance(form, forms_.of(value)) : std::nullopt;
      if (distance)
        place = {value.v, static_cast<int64_t>(*distance)};
    });
    return place;
  }
  void note_lowest(const Place &place) {
    int64_t &lowest = lowest_.try_emplace(place.base, place.offset).first->second;
    lowest = std::max(lowest, place.offset);
  }

  // False where an address goes where it is not followed.
  bool look_at(uint32_t node) {
    uint32_t at = ssa_.nodes[node].first_uop;
    for (const Instruction &instruction :
         graph_.instructions_of(graph_.blocks[ssa_.nodes[node].block])) {
      if (instruction.opaque && graph_.code.touched_by(instruction).writes & bit(kMemory))
        return false;
      for (const assay_uop &uop : graph_.code.uops_of(instruction)) {
        const bool is_followed = reads_memory(uop) || writes_memory(uop)
                                     ? follow_access(instruction, node, at, uop)
                                     : follow_value(at, uop);
        if (!is_followed)
          return false;
        at++;
      }
    }
    return true;
  }

  bool follow_access(const Instruction &instruction, uint32_t node, uint32_t at,
                     const assay_uop &uop) {
    const ExprId address = forms_.address(node, at, uop);
    const auto place = place_of(address);
    const bool is_store = writes_memory(uop);
    const ValueId stored = is_store ? ssa_.stored_at(at) : ValueId{};
    if (instruction.is_call() && is_store) { // what lies below is the callee's
      if (!place)
        return false;
      note_lowest({place->base, place->offset + int64_t{uop.width}});
      return true;
    }
    if (stored.known() && is_on_stack(forms_.of(stored)))
      return false;
    if (!place)
      return !is_on_stack(address);
    if (uop.op == ASSAY_UOP_load_if || uop.op == ASSAY_UOP_store_if)
      return false;
    if (is_store)
      stores_.push_back({*place, uop.width, node, at, stored});
    else if (forms_.of(ssa_.uops[at].result).known())
      loads_.push_back({*place, uop.width, node, at, ssa_.uops[at].result});
    return true;
  }

  // What is made of an address of the stack: another one, in the same registers, or flags.
  bool follow_value(uint32_t at, const assay_uop &uop) {
    const UopValues &values = ssa_.uops[at];
    if (!has_result(uop))
      return true;
    const bool is_made_of_one =
        std::ranges::any_of(std::array{values.a, values.b, values.c}, [&](ValueId value) {
          return value.known() && is_on_stack(forms_.of(value));
        });
    const unsigned variable = ssa_.values[values.result.v].variable;
    if (!is_made_of_one || variable == kFlags)
      return true;
    if (variable == ASSAY_REG_RSP) {
      if (const auto before = place_of(forms_.of(values.a)); before && uop.op == ASSAY_UOP_and)
        note_lowest(*before); // what lies below is addressed from where it points now
      return true;
    }
    return (variable == ASSAY_REG_RBP || variable == kVariables) &&
           place_of(forms_.of(values.result));
  }

  const StackAccess *only_store_of(const StackAccess &load) const {
    const auto lowest = lowest_.find(load.at.base);
    if (lowest != lowest_.end() && load.at.offset < lowest->second)
      return nullptr;
    const StackAccess *only = nullptr;
    constexpr int64_t kMaxWidth = 8;
    StackAccess first = load;
    first.at.offset -= kMaxWidth;
    for (auto store = std::ranges::lower_bound(stores_, first, is_before);
         store != stores_.end() && store->at.base == load.at.base && store->at.offset < load.end();
         ++store)
      if (store->end() > load.at.offset) {
        if (only)
          return nullptr;
        only = &*store;
      }
    if (!only || !only->value.known() || only->at.offset != load.at.offset ||
        only->width < load.width)
      return nullptr;
    const bool comes_first = only->node == load.node
                                 ? only->place < load.place
                                 : ssa_.dominators.dominates(only->node, load.node);
    return comes_first ? only : nullptr;
  }

  const FlowGraph &graph_;
  const Ssa &ssa_;
  Forms &forms_;
  std::vector<StackAccess> stores_, loads_;
  std::unordered_map<uint32_t, int64_t>
      lowest_; // by base: slots below it are written otherwise, too
};

} // namespace

std::unordered_map<uint32_t, ValueId> find_spills(const FlowGraph &graph, const Ssa &ssa,
                                                  Forms &forms) {
  return Search(graph, ssa, forms).run();
}

} // namespace binary
