// Profiles for tests: small ones with known contents, and random ones of every shape that the model
// allows. Random means from a seed: a failure can be repeated.
#pragma once

#include "profile/heap_records.h"
#include "profile/objects_records.h"
#include "profile/profile.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace profile_builder {

// A heap info block of `count` objects made at random, as the runtime would have joined them.
inline AssayHib random_hib(std::mt19937_64 &random, int count) {
  AssayHib sum;
  assay_hib_clear(&sum);
  for (int i = 0; i < count; i++) {
    AssayObject object = {};
    object.size = random() % 5000;
    object.reads = random() % 100;
    object.writes = random() % 100;
    object.alloc_us = random() % 1000000;
    object.free_us = object.alloc_us + random() % 100000;
    object.blocks_spanned = object.size / 64 + 1;
    object.blocks_touched = random() % (object.blocks_spanned + 1);
    object.touched_bytes = std::min<uint64_t>(object.size, object.blocks_touched * 64);
    object.alloc_cpu = random() % 4;
    object.free_cpu = random() % 4;
    AssayHib one = assay_hib_of(&object);
    assay_hib_merge(&sum, &one, 1);
  }
  return sum;
}

inline AssayHibHistograms random_histograms(std::mt19937_64 &random) {
  AssayHibHistograms histograms = {};
  for (int i = 0; i < 4; i++) {
    histograms.size[random() % ASSAY_HISTOGRAM_BUCKETS]++;
    histograms.lifetime_us[random() % ASSAY_HISTOGRAM_BUCKETS]++;
  }
  return histograms;
}

// Touched lines as the records have them: of each group its planes.
inline std::vector<std::byte>
encoded_groups(const std::vector<std::pair<uint64_t, std::vector<uint64_t>>> &groups) {
  std::vector<std::byte> bytes;
  auto number = [&](uint64_t n) {
    for (; n >= 128; n >>= 7)
      bytes.push_back(std::byte(n | 128));
    bytes.push_back(std::byte(n));
  };
  uint64_t before = 0;
  for (const auto &[group, planes] : groups) {
    number(group - before);
    number(0);
    before = group;
    uint8_t changed = 0;
    for (size_t i = 0; i < planes.size(); i++)
      changed |= static_cast<uint8_t>((planes[i] != (i ? planes[i - 1] : 0)) << i);
    bytes.push_back(std::byte(changed));
    for (size_t i = 0; i < planes.size(); i++)
      if (changed >> i & 1)
        for (unsigned byte = 0; byte < 8; byte++)
          bytes.push_back(std::byte(planes[i] >> (8 * byte)));
  }
  return bytes;
}

inline profile::WorkingSet random_workingset(std::mt19937_64 &random,
                                             const std::vector<profile::StackId> &stacks) {
  profile::WorkingSet set;
  set.unit = random() % 4;
  set.interval = random() % 10000;
  uint64_t time = 0;
  for (uint32_t i = 0, n = 1 + random() % 12; i < n; i++) {
    uint64_t end = time + random() % 100;
    set.snapshots.push_back({time, end, time, end, random() % 3 ? "" : "mark"});
    time = end;
  }
  auto count = static_cast<uint32_t>(set.snapshots.size());
  for (uint32_t first = 0; first < count; first += 7) {
    uint32_t planes = std::min(count - first, 7u);
    std::vector<std::pair<uint64_t, std::vector<uint64_t>>> groups;
    for (uint64_t group = random() % 1000; groups.size() < 5; group += 1 + random() % 300) {
      groups.emplace_back(group, std::vector<uint64_t>(planes));
      for (uint64_t &plane : groups.back().second)
        plane = random() & random();
    }
    set.lines.push_back({first, planes, encoded_groups(groups)});
  }
  auto owner = [&](profile::StackId stack) { // each once, in the order of their first use
    profile::OwnerSite wanted = {stack, profile::TypeId(), {}};
    auto known = std::find(set.owners.begin(), set.owners.end(), wanted);
    if (known == set.owners.end())
      known = set.owners.insert(known, wanted);
    return static_cast<uint32_t>(known - set.owners.begin());
  };
  for (uint32_t snapshot = 0; snapshot < count && !stacks.empty(); snapshot++) {
    for (uint64_t line = random() % 64000, i = 0; i < 3; i++, line += random() % 100)
      set.owned.push_back(
          {snapshot, line, 1 + random() % 64, owner(stacks[random() % stacks.size()])});
    set.stacks.push_back({snapshot, 1, stacks[random() % stacks.size()]});
  }
  set.regions.push_back({random() % 1000, 100000, ASSAY_REGION_FILE, 0, "/data"});
  return set;
}

// One process with up to `contexts` contexts over a pool of modules, types and stacks that all
// seeds share, so that profiles of different seeds overlap.
inline profile::ObjectGroup random_objects(std::mt19937_64 &random) {
  profile::ObjectGroup group;
  group.kind = random() % 2 ? ASSAY_OBJECT_HEAP : ASSAY_OBJECT_STACK;
  group.encoding = random() % 3 ? uint32_t{ASSAY_WORDS_BYTES} : uint32_t{ASSAY_WORDS_BITS};
  group.class_bytes = random() % 2 ? 64 : 4096;
  group.cell_units = assay_cell_units(group.class_bytes, group.unit_bytes());
  uint64_t *sum = &group.sums.count;
  for (size_t i = 0; i < sizeof group.sums / sizeof *sum; i++)
    sum[i] = 1 + random() % 1000;
  auto cells = [&](size_t count) {
    std::vector<AssayWordCell> result(count);
    for (AssayWordCell &cell : result)
      cell = {random() % 300, random() % 3, random() % 2};
    return result;
  };
  if (group.cell_units > 1)
    group.positions = cells(assay_line_positions(group.unit_bytes()));
  group.cells = cells(1 + random() % 16);
  return group;
}

inline profile::Process random_process(std::mt19937_64 &random, uint64_t seed) {
  profile::Process process;
  process.pid = 100 + seed;
  process.start_unix_ns = 1000000 * (seed % 7) + seed;
  process.executable = "/bin/app";
  process.arguments = {"app", "--seed", std::to_string(seed)};
  if (random() % 2)
    process.machine = profile::Machine{2, 4096, 64, 32768, 1 << 20, 0, "cpu", "6.1", "host"};
  if (random() % 2)
    process.options = "depth=64";
  process.counters = random() % 3 + (random() % 2 ? ASSAY_COUNTERS_GLOBALS : 0);
  for (uint64_t mark = random() % 3; mark; mark--)
    process.marks.push_back({random() % 100000, "phase " + std::to_string(random() % 3)});
  if (random() % 4 == 0)
    process.reset_us = random() % 1000;
  return process;
}

// As freed and, if live objects were walked, as live.
template <class RandomStack>
profile::HeapContext random_context(std::mt19937_64 &random, bool walked,
                                    RandomStack random_stack) {
  profile::HeapContext gained;
  int freed = static_cast<int>(random() % 4), live = walked ? static_cast<int>(random() % 3) : 0;
  gained.freed = random_hib(random, freed);
  gained.live = random_hib(random, live);
  if (freed)
    gained.freed_histograms = random_histograms(random);
  if (live)
    gained.live_histograms = random_histograms(random);
  gained.peak_bytes = random() % 10000;
  gained.at_peak_bytes = random() % 10000;
  for (uint64_t place = 0; place < random() % 3; place++)
    gained.freed_at.push_back({random_stack(), 1 + random() % 5, random() % 1000});
  return gained;
}

inline profile::NonHeapBlock random_non_heap(std::mt19937_64 &random, profile::ModuleId module) {
  profile::NonHeapBlock counts{ASSAY_NON_HEAP_GLOBALS, module,         0,
                               random() % 10 * 64,     random() % 100, random() % 100};
  if (random() % 2) {
    counts.kind = ASSAY_NON_HEAP_STACK;
    counts.module = profile::ModuleId();
    counts.thread = 1 + random() % 2;
  }
  return counts;
}

inline profile::ObjectGlobals random_globals(std::mt19937_64 &random, profile::ModuleId module) {
  profile::ObjectGlobals globals{module, ASSAY_WORDS_BYTES, {}};
  for (uint64_t offset = 0x4000, run = random() % 9; run; run--, offset += 4 * (random() % 40))
    globals.runs.push_back({offset, 1 + random() % 30, 1 + random() % 9});
  return globals;
}

// Modules, units and types that a random profile's records refer to.
struct RandomNames {
  std::vector<profile::ModuleId> modules;
  std::vector<profile::TypeId> types = {profile::TypeId()};
};

inline RandomNames random_names(std::mt19937_64 &random, uint64_t seed,
                                profile::Assembler &assembler, profile::Process &process) {
  RandomNames names;
  auto &modules = names.modules;
  for (uint8_t number = 0; number < 3; number++) {
    std::vector<uint8_t> build_id(number == 2 ? 0 : 20, number);
    modules.push_back(
        assembler.module("/bin/module" + std::to_string(number), build_id, number < 2));
    process.mappings.push_back({modules.back(), 0x1000u * number, 0x1000u * (number + 1), 0x1000,
                                random() % 100, std::nullopt});
  }
  if (random() % 2) // unloaded and loaded again
    process.mappings[1].unloaded_us = 77;
  process.mappings.push_back({modules[1], 0x9000, 0xa000, 0x9000, 500, std::nullopt});
  for (uint64_t unit = random() % 3; unit; unit--)
    assembler.declare(modules[unit % 2],
                      profile::Unit{std::to_string(random() % 4) + ".c",
                                    std::vector<uint32_t>(seed % 4, uint32_t(process.counters)),
                                    unit});
  for (uint64_t number = 1; number < 5; number++) {
    profile::Type type = {number * 0x100000001ULL, "Type" + std::to_string(number), number * 8};
    names.types.push_back(assembler.type(type));
    assembler.declare(modules[number % 2], names.types.back());
  }
  return names;
}

inline profile::Profile random_profile(uint64_t seed, int contexts = 20) {
  std::mt19937_64 random(seed);
  profile::Assembler assembler;
  profile::Process process = random_process(random, seed);
  const RandomNames names = random_names(random, seed, assembler, process);
  // One more is known by its short id alone: that one exists only where a context has it.
  auto random_type = [&] {
    size_t choice = random() % (names.types.size() + 1);
    return choice < names.types.size() ? names.types[choice] : assembler.type({0x77, "", 0});
  };
  auto random_module = [&] { return names.modules[random() % 3]; };
  auto random_stack = [&] {
    profile::Stack stack;
    for (uint64_t depth = 1 + random() % 3; depth; depth--) {
      uint64_t offset = 0x100 + random() % 5 * 16;
      profile::ModuleId module = random() % 8 ? random_module() : profile::ModuleId();
      stack.frames.push_back({module, offset});
    }
    stack.cut = random() % 8 == 0;
    return assembler.stack(stack);
  };
  for (uint64_t point = 0; point < random() % 4; point++)
    process.timeline.push_back({point * 1000, point, random() % 100000, 100000});
  bool walked = random() % 4;
  if (walked)
    process.walk = profile::Walk{1 + random() % 9, 12345, 3, 300};
  if (random() % 4)
    process.ends.push_back({ASSAY_END_EXIT, random() % 3, 999999});
  else
    assembler.profile().losses[ASSAY_LOSS_killed] = 1;
  for (int index = 0; index < contexts; index++) {
    profile::HeapContext gained = random_context(random, walked, random_stack);
    profile::StackId stack = random_stack();
    profile::TypeId type = random_type();
    const profile::Origin origins[] = {
        {}, {}, {ASSAY_ORIGIN_MMAP, ""}, {ASSAY_ORIGIN_POOL, "nodes"}, {ASSAY_ORIGIN_POOL, "keys"}};
    profile::merge_heap(profile::heap_context(assembler, stack, type, origins[random() % 5]),
                        gained, 0);
  }
  for (uint64_t event = random() % 4; event; event--)
    assembler.add(profile::Event{random_stack(), random() % 2 ? "request" : "miss",
                                 1 + random() % 9, random() % 100});
  for (uint64_t block = walked ? random() % 20 : 0; block; block--) {
    const profile::NonHeapBlock counts = random_non_heap(random, random_module());
    profile::add(assembler, counts);
  }
  if (random() % 2)
    assembler.profile().losses[ASSAY_LOSS_stack_cut] = random() % 10 + 1;
  if (random() % 2)
    process.workingset = random_workingset(random, {random_stack(), random_stack()});
  for (uint64_t group = random() % 6; group; group--) {
    profile::ObjectGroup objects = random_objects(random);
    objects.stack = random_stack();
    objects.type = random_type();
    if (random() % 2)
      objects.free_stack = random_stack();
    profile::add(assembler, objects);
  }
  for (uint64_t module = random() % 3; module; module--) {
    const profile::ObjectGlobals globals = random_globals(random, random_module());
    profile::add(assembler, globals);
  }
  if (random() % 2)
    process.object_sampling =
        profile::ObjectSampling{uint32_t(random() % 2), 0, 10000, 20000, random() % 100, 12345};
  assembler.profile().processes.push_back(process);
  return assembler.finish();
}

// What addition in another order leaves different, made equal: neighbours in time.
inline void forget_order(profile::Profile &profile) {
  for (profile::HeapContext &context : profile.heap)
    for (AssayHib *hib : {&context.freed, &context.live}) {
#define ASSAY_FORGET_sum(name)
#define ASSAY_FORGET_min(name)
#define ASSAY_FORGET_max(name)
#define ASSAY_FORGET_link(name)
#define ASSAY_FORGET_first(name) hib->name = 0;
#define ASSAY_FORGET_last(name) hib->name = 0;
#define ASSAY_HIB(type, name, merge, unit) ASSAY_FORGET_##merge(name)
#include "abi/hib.def"
#undef ASSAY_FORGET_sum
#undef ASSAY_FORGET_min
#undef ASSAY_FORGET_max
#undef ASSAY_FORGET_link
#undef ASSAY_FORGET_first
#undef ASSAY_FORGET_last
    }
}

} // namespace profile_builder
