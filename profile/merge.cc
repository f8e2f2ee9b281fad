// Merging by content.
//
// The problem: ids differ from file to file, and so does the order of everything. The idea: intern
// each thing by what it is, then sort all and renumber once at the end; what results does not
// depend on the order of the inputs, which is what makes "merge of splits equals the whole"
// testable by ==. Keeping the order of first appearance was refused for that reason. A stack is
// kept twice while assembling (map key and vector): simple, and the peak is that of the largest
// profile.

#include "profile/merge.h"

#include "base/stable_sort.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace profile {
namespace {

template <class T> void sort_without_repeats(std::vector<T> &items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Sorts by `less` and returns, for each old index, its new one.
template <class Id, class T, class Less>
std::vector<Id> sort_and_renumber(std::vector<T> &items, Less less) {
  std::vector<uint32_t> order(items.size());
  std::vector<Id> renumbered(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return less(items[a], items[b]); });
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (uint32_t index = 0; index < order.size(); index++) {
    renumbered[order[index]].v = index;
    sorted.push_back(std::move(items[order[index]]));
  }
  items = std::move(sorted);
  return renumbered;
}

} // namespace

size_t Assembler::StackHash::operator()(const Stack &stack) const {
  uint64_t hash = stack.cut;
  for (const CodeLocation &frame : stack.frames) {
    hash = (hash ^ frame.offset ^ (uint64_t{frame.module.v} << 48)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

ModuleId Assembler::module(const std::string &path, const std::vector<uint8_t> &build_id,
                           bool instrumented) {
  // A build id says all: a copy of a file at another path is the same code.
  auto [place, is_new] = modules_.try_emplace({build_id, build_id.empty() ? path : ""});
  if (is_new) {
    place->second.v = static_cast<uint32_t>(profile_.modules.size());
    profile_.modules.push_back({path, build_id, false, {}, {}});
  }
  Module &known = profile_.modules[place->second.v];
  known.instrumented |= instrumented;
  known.path = std::min(known.path, path);
  return place->second;
}

TypeId Assembler::type(const Type &type) {
  auto [place, is_new] = types_.try_emplace(type);
  if (is_new) {
    place->second.v = static_cast<uint32_t>(profile_.types.size());
    profile_.types.push_back(type);
  }
  return place->second;
}

StackId Assembler::stack(const Stack &stack) {
  auto [place, is_new] = stacks_.try_emplace(stack);
  if (is_new) {
    place->second.v = static_cast<uint32_t>(profile_.stacks.size());
    profile_.stacks.push_back(stack);
  }
  return place->second;
}

void Assembler::declare(ModuleId module, TypeId type) {
  profile_.modules[module.v].types.push_back(type);
}

void Assembler::declare(ModuleId module, const Unit &unit) {
  profile_.modules[module.v].units.push_back(unit);
}

void Assembler::add(const Event &event) {
  auto [place, is_new] = events_.try_emplace({event.stack, event.name}, profile_.events.size());
  if (is_new)
    profile_.events.push_back({event.stack, event.name, 0, 0});
  Event &sum = profile_.events[place->second];
  sum.count += event.count;
  sum.weight += event.weight;
}

Assembler::Assembler() {
  for (const ToolRecords *tool : tool_records())
    sums_.push_back(tool->sums());
}

ToolSums &Assembler::sums(uint64_t tool) {
  return *sums_[static_cast<size_t>(std::countr_zero(tool))];
}

// All but what the tools' sums have.
NewIds Assembler::add_shared(const Profile &other) {
  NewIds ids;
  for (const Type &each : other.types)
    ids.types.push_back(type(each));
  for (const Module &each : other.modules) {
    ids.modules.push_back(module(each.path, each.build_id, each.instrumented));
    if (std::string &kept = profile_.modules[ids.modules.back().v].kept; kept.empty())
      kept = each.kept;
    for (TypeId declared : each.types)
      declare(ids.modules.back(), ids.types[declared.v]);
    for (const Unit &unit : each.units)
      declare(ids.modules.back(), unit);
  }
  for (const Stack &each : other.stacks) {
    Stack translated = each;
    for (CodeLocation &frame : translated.frames)
      ids.translate(frame.module);
    ids.stacks.push_back(stack(translated));
  }
  for (const Event &each : other.events)
    add(Event{ids.stacks[each.stack.v], each.name, each.count, each.weight});
  for (const Process &each : other.processes) {
    profile_.processes.push_back(each);
    translate(profile_.processes.back(), ids);
  }
  for (auto [kind, count] : other.losses)
    profile_.losses[kind] += count;
  profile_.notes.insert(profile_.notes.end(), other.notes.begin(), other.notes.end());
  profile_.notes.running += other.notes.running;
  return ids;
}

void Assembler::add(const Profile &other) {
  const NewIds ids = add_shared(other);
  for (auto &sums : sums_)
    sums->add(profile_, other, ids);
}

void Assembler::add(Profile &&other) {
  const NewIds ids = add_shared(other);
  for (auto &sums : sums_)
    sums->take(profile_, other, ids);
  other = {};
}

void Assembler::translate(Process &process, const NewIds &ids) {
  for (Mapping &mapping : process.mappings)
    ids.translate(mapping.module);
  for (auto &sums : sums_)
    sums->translate(process, ids);
}

Profile Assembler::finish() {
  Profile &p = profile_;
  NewIds ids;
  ids.types = sort_and_renumber<TypeId>(p.types, std::less<Type>());
  for (Module &module : p.modules) {
    for (TypeId &type : module.types)
      ids.translate(type);
    sort_without_repeats(module.types);
    sort_without_repeats(module.units);
  }
  ids.modules = sort_and_renumber<ModuleId>(p.modules, [](const Module &a, const Module &b) {
    return std::tie(a.build_id, a.path) < std::tie(b.build_id, b.path);
  });
  for (Stack &stack : p.stacks)
    for (CodeLocation &frame : stack.frames)
      ids.translate(frame.module);
  ids.stacks = sort_and_renumber<StackId>(p.stacks, std::less<Stack>());
  for (Event &event : p.events)
    ids.translate(event.stack);
  std::sort(p.events.begin(), p.events.end());
  for (auto &sums : sums_)
    sums->finish(p, ids);
  for (Process &process : p.processes) {
    translate(process, ids);
    std::sort(process.mappings.begin(), process.mappings.end());
    base::stable_sort(process.marks,
                      [](const Mark &a, const Mark &b) { return a.time_us < b.time_us; });
  }
  std::sort(p.processes.begin(), p.processes.end());
  Profile result = std::move(profile_);
  *this = Assembler();
  return result;
}

void merge(Profile &into, const Profile &other) {
  Assembler assembler;
  assembler.add(into);
  assembler.add(other);
  into = assembler.finish();
}

} // namespace profile
