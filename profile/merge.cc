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
#include <numeric>

namespace profile {
namespace {

void add_histograms(AssayHibHistograms &into, const AssayHibHistograms &other) {
  for (size_t bucket = 0; bucket < ASSAY_HISTOGRAM_BUCKETS; bucket++) {
    into.size[bucket] += other.size[bucket];
    into.lifetime_us[bucket] += other.lifetime_us[bucket];
  }
}

// Places of frees are appended while assembling; equal ones become one here.
void combine_free_sites(std::vector<HeapFreedAt> &places) {
  std::sort(places.begin(), places.end());
  size_t kept = 0;
  for (const HeapFreedAt &place : places) {
    if (kept && places[kept - 1].stack == place.stack) {
      places[kept - 1].count += place.count;
      places[kept - 1].bytes += place.bytes;
    } else {
      places[kept++] = place;
    }
  }
  places.resize(kept);
}

template <class T> void sort_without_repeats(std::vector<T> &items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Sorts by `less` and returns, for each old index, its new one.
template <class T, class Less>
std::vector<uint32_t> sort_and_renumber(std::vector<T> &items, Less less) {
  std::vector<uint32_t> order(items.size()), renumbered(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return less(items[a], items[b]); });
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (uint32_t index = 0; index < order.size(); index++) {
    renumbered[order[index]] = index;
    sorted.push_back(std::move(items[order[index]]));
  }
  items = std::move(sorted);
  return renumbered;
}

template <class Id> void renumber(Id &id, const std::vector<uint32_t> &renumbered) {
  if (id.known())
    id.v = renumbered[id.v];
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

HeapContext &Assembler::heap_context(StackId stack, TypeId type, const Origin &origin) {
  auto [place, is_new] = heap_.try_emplace({stack, type, origin}, profile_.heap.size());
  if (is_new) {
    profile_.heap.emplace_back();
    profile_.heap.back().stack = stack;
    profile_.heap.back().type = type;
    profile_.heap.back().origin = origin;
  }
  return profile_.heap[place->second];
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

void Assembler::add(const NonHeapBlock &block) {
  auto [place, is_new] = non_heap_.try_emplace(
      {block.kind, block.module, block.thread, block.offset}, profile_.non_heap.size());
  if (is_new)
    profile_.non_heap.push_back({block.kind, block.module, block.thread, block.offset, 0, 0});
  NonHeapBlock &sum = profile_.non_heap[place->second];
  sum.reads += block.reads;
  sum.writes += block.writes;
}

void merge_heap(HeapContext &into, const HeapContext &later, int bridge) {
  assay_hib_merge(&into.freed, &later.freed, bridge);
  assay_hib_merge(&into.live, &later.live, 0);
  add_histograms(into.freed_histograms, later.freed_histograms);
  add_histograms(into.live_histograms, later.live_histograms);
  into.peak_bytes = std::max(into.peak_bytes, later.peak_bytes);
  into.at_peak_bytes = std::max(into.at_peak_bytes, later.at_peak_bytes);
  into.recursion.add(later.recursion);
  into.freed_at.insert(into.freed_at.end(), later.freed_at.begin(), later.freed_at.end());
}

void Assembler::add(const Profile &other) {
  std::vector<TypeId> types;
  types.reserve(other.types.size());
  for (const Type &each : other.types)
    types.push_back(type(each));
  std::vector<ModuleId> modules;
  modules.reserve(other.modules.size());
  for (const Module &each : other.modules) {
    modules.push_back(module(each.path, each.build_id, each.instrumented));
    for (TypeId declared : each.types)
      declare(modules.back(), types[declared.v]);
    for (const Unit &unit : each.units)
      declare(modules.back(), unit);
  }
  std::vector<StackId> stacks;
  stacks.reserve(other.stacks.size());
  for (const Stack &each : other.stacks) {
    Stack translated = each;
    for (CodeLocation &frame : translated.frames)
      if (frame.module.known())
        frame.module = modules[frame.module.v];
    stacks.push_back(stack(translated));
  }
  for (const HeapContext &each : other.heap) {
    HeapContext translated = each;
    for (HeapFreedAt &place : translated.freed_at)
      place.stack = stacks[place.stack.v];
    TypeId type_here = each.type.known() ? types[each.type.v] : TypeId();
    merge_heap(heap_context(stacks[each.stack.v], type_here, each.origin), translated, 0);
  }
  for (const Event &each : other.events)
    add(Event{stacks[each.stack.v], each.name, each.count, each.weight});
  for (const NonHeapBlock &each : other.non_heap) {
    NonHeapBlock translated = each;
    if (each.module.known())
      translated.module = modules[each.module.v];
    add(translated);
  }
  for (const Process &each : other.processes) {
    profile_.processes.push_back(each);
    for (Mapping &mapping : profile_.processes.back().mappings)
      mapping.module = modules[mapping.module.v];
    if (auto &set = profile_.processes.back().working_set) {
      for (LineOwner &owner : set->owners) {
        owner.stack = stacks[owner.stack.v];
        if (owner.type.known())
          owner.type = types[owner.type.v];
      }
      for (SnapshotStack &each_stack : set->stacks)
        each_stack.stack = stacks[each_stack.stack.v];
    }
  }
  for (auto [kind, count] : other.losses)
    profile_.losses[kind] += count;
  profile_.notes.insert(profile_.notes.end(), other.notes.begin(), other.notes.end());
}

Profile Assembler::finish() {
  Profile &p = profile_;
  auto types = sort_and_renumber(p.types, std::less<Type>());
  for (Module &module : p.modules) {
    for (TypeId &type : module.types)
      renumber(type, types);
    sort_without_repeats(module.types);
    sort_without_repeats(module.units);
  }
  auto modules = sort_and_renumber(p.modules, [](const Module &a, const Module &b) {
    return std::tie(a.build_id, a.path) < std::tie(b.build_id, b.path);
  });
  for (Stack &stack : p.stacks)
    for (CodeLocation &frame : stack.frames)
      renumber(frame.module, modules);
  auto stacks = sort_and_renumber(p.stacks, std::less<Stack>());
  for (HeapContext &context : p.heap) {
    renumber(context.stack, stacks);
    renumber(context.type, types);
    for (HeapFreedAt &place : context.freed_at)
      renumber(place.stack, stacks);
    combine_free_sites(context.freed_at);
  }
  std::sort(p.heap.begin(), p.heap.end(), [](const HeapContext &a, const HeapContext &b) {
    return std::tie(a.stack, a.type, a.origin) < std::tie(b.stack, b.type, b.origin);
  });
  for (Event &event : p.events)
    renumber(event.stack, stacks);
  std::sort(p.events.begin(), p.events.end());
  for (NonHeapBlock &block : p.non_heap)
    renumber(block.module, modules);
  std::sort(p.non_heap.begin(), p.non_heap.end());
  for (Process &process : p.processes) {
    for (Mapping &mapping : process.mappings)
      renumber(mapping.module, modules);
    std::sort(process.mappings.begin(), process.mappings.end());
    if (auto &set = process.working_set) {
      for (LineOwner &owner : set->owners) {
        renumber(owner.stack, stacks);
        renumber(owner.type, types);
      }
      for (SnapshotStack &stack : set->stacks)
        renumber(stack.stack, stacks);
    }
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
