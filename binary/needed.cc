// A join need not be recorded if whatever comes to it can be computed: then it is a variable of the
// skeleton that is assigned on each way. So each needed join is followed back through further joins to
// what is no join; if all of that is given or recorded already, the join is free. Otherwise it is
// recorded itself, which is one value, as its missing source would be.
//
// This is no minimum cut: that weighs how often each place is executed and belongs to the plan of a
// trace.

#include "binary/needed.h"

#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace binary {
namespace {

using Values = std::unordered_set<ValueId>;

class Needs {
public:
  Needs(const Ssa &ssa, const Forms &forms) : ssa_(ssa), forms_(forms) {}

  std::vector<NeededDefinition> run(const std::vector<ExprId> &addresses) {
    std::vector<ValueId> leaves;
    Values seen;
    for (ExprId address : addresses)
      forms_.definitions(address, [&](ValueId value) {
        if (seen.insert(value).second)
          leaves.push_back(value);
      });
    for (ValueId value : leaves)
      if (kind_of(value) != ValueKind::join)
        sources_.insert(value);
    find_spoiled(leaves);
    std::vector<NeededDefinition> needed;
    std::set<std::tuple<unsigned, unsigned, uint32_t>> told;
    for (ValueId value : leaves) {
      Need need = kind_of(value) == ValueKind::entry            ? Need::argument
                  : is_join(value) && !spoiled_.contains(value) ? Need::computed
                                                                : Need::recorded;
      // Copies of a block make the same definition at the same place.
      const Value &what = ssa_.values[value.v];
      bool joins = what.kind == ValueKind::join;
      uint32_t block = ssa_.nodes[what.node].block;
      auto place = std::tuple(static_cast<unsigned>(what.kind), unsigned{what.variable},
                              joins                              ? block
                              : what.kind == ValueKind::micro_op ? what.uop
                                                                 : what.instruction);
      bool is_empty_node = joins && block == Node::kNoBlock;
      if (!is_empty_node && !told.insert(place).second)
        continue;
      needed.push_back({value, need});
    }
    return needed;
  }

private:
  ValueKind kind_of(ValueId value) const { return ssa_.values[value.v].kind; }

  bool is_join(ValueId value) const {
    return kind_of(value) == ValueKind::join && ssa_.values[value.v].variable < kFlags;
  }

  // Follows all joins that leaves are made of at once; what a source that is not known spoils, is
  // passed on to the joins that it comes to.
  void find_spoiled(const std::vector<ValueId> &leaves) {
    std::vector<ValueId> work, spoiled;
    Values seen;
    std::unordered_map<ValueId, std::vector<ValueId>> users;
    auto arrive = [&](ValueId value) {
      if (is_join(value) && seen.insert(value).second)
        work.push_back(value);
    };
    for (ValueId value : leaves)
      arrive(value);
    while (!work.empty()) {
      ValueId join = work.back();
      work.pop_back();
      bool spoils = false;
      for (ValueId from : ssa_.operands(join)) {
        if (!from.known() || !forms_.of(from).known()) {
          spoils = true;
          continue;
        }
        forms_.definitions(forms_.of(from), [&](ValueId value) {
          if (is_join(value)) {
            users[value].push_back(join);
            arrive(value);
          } else if (kind_of(value) != ValueKind::entry && !sources_.contains(value)) {
            spoils = true;
          }
        });
      }
      if (spoils && spoiled_.insert(join).second)
        spoiled.push_back(join);
    }
    while (!spoiled.empty()) {
      ValueId value = spoiled.back();
      spoiled.pop_back();
      for (ValueId user : users[value])
        if (spoiled_.insert(user).second)
          spoiled.push_back(user);
    }
  }

  const Ssa &ssa_;
  const Forms &forms_;
  Values sources_; // that are recorded or given
  Values spoiled_; // joins of something that is not
};

} // namespace

std::vector<NeededDefinition> needed_definitions(const Ssa &ssa, const Forms &forms,
                                                 const std::vector<ExprId> &addresses) {
  return Needs(ssa, forms).run(addresses);
}

} // namespace binary
