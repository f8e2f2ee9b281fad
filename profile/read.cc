// From records to the model.
//
// The problem: a file is a stream of deltas (what ended since the last flush), replacements (walks
// of the live objects, peaks) and facts, with numbers that mean something only in that file; and it
// may be cut anywhere. The idea: sections. A Program record opens a section; deltas join in file
// order within it (neighbours in time, bridge = 1), replacements keep only their last complete
// value; when the section ends, its sums are folded into the file's contexts as those of any other
// process (bridge = 0). Numbers are resolved at the very end, so that the order of Sites, Module
// and Context records does not matter. Reading straight into the final tables was refused: contexts
// would have to be re-keyed whenever a Sites record names their type.
//
// A Reset record empties its section, and what the process holds of measurements; what names things
// (modules, contexts, types, origins, marks) stays.
//
// A record that passes its checksum and still makes no sense is counted as `bad_record` and
// skipped. Memory stays proportional to the file: every table entry stems from a record.

#include "abi/tools.h"
#include "base/fail.h"
#include "profile/container.h"
#include "profile/merge.h"
#include "profile/profile.h"
#include "profile/read_working_set.h"
#include "profile/sites.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

namespace profile {
namespace {

struct FileContext {
  uint32_t type = 0;
  uint32_t origin = 0;
  bool cut = false;
  std::vector<uint64_t> frames;
  friend bool operator==(const FileContext &, const FileContext &) = default;
};

struct LiveBlock {
  LiveBlock() : histograms() { assay_hib_clear(&hib); }
  AssayHib hib;
  AssayHibHistograms histograms;
};

// What one process said about one context.
using ContextNumber = uint32_t;
struct Counts {
  uint64_t reads = 0, writes = 0;
};
struct EventSum {
  uint64_t count = 0, weight = 0;
};
using NonHeapSlot = std::tuple<uint32_t, uint32_t, uint64_t>; // kind, owner, offset
struct WalkBlocks {
  std::unordered_map<ContextNumber, LiveBlock> live;
  std::map<NonHeapSlot, Counts> non_heap;
};
struct Section {
  std::unordered_map<ContextNumber, HeapContext> contexts; // stack, type, live: not yet
  WalkBlocks walk;                                         // of walk_number, perhaps incomplete
  WalkBlocks complete_walk;
  uint64_t walk_number = 0;
  std::map<NonHeapSlot, Counts> non_heap; // of modules that were unloaded
  std::map<std::pair<ContextNumber, ContextNumber>, HeapFreedAt> freed_at;
  std::map<std::pair<ContextNumber, std::string>, EventSum> events;
  std::unordered_map<ContextNumber, Recursion> recursions; // of contexts of any tool
  WorkingSetReader working_set;
};

class FileReader {
public:
  FileReader(std::span<const std::byte> bytes, const std::string &path)
      : path_(path), container_(bytes, path) {}

  Profile read() {
    RecordView record;
    while (container_.next(record))
      take(record);
    close_section();
    if (container_.lost_bytes()) {
      lose(ASSAY_LOSS_truncated, container_.lost_bytes());
      output_.profile().notes.push_back(container_.damage());
    }
    resolve_contexts();
    resolve_events();
    resolve_non_heap();
    resolve_working_sets();
    for (const Process &process : output_.profile().processes)
      if (process.ends.empty())
        lose(ASSAY_LOSS_killed, 1);
    return output_.finish();
  }

private:
  void take(const RecordView &record) {
    try {
      switch (record.kind) {
#define ASSAY_RECORD(Name, number, meaning)                                                        \
  case number: take(fixed_part<Assay##Name>(record), record.tail()); break;
#define ASSAY_FIELD(type, name, meaning)
#define ASSAY_TAIL(element, name, meaning)
#define ASSAY_END(Name)
#include "abi/records.def"
      default: lose(ASSAY_LOSS_unknown_record, 1);
      }
    } catch (const base::Failure &) {
      lose(ASSAY_LOSS_bad_record, 1);
    }
  }

  using Bytes = std::span<const std::byte>;

  void take(const AssayProgram &r, Bytes tail) {
    auto strings = read_strings(tail);
    close_section();
    Process process;
    process.pid = r.pid;
    process.parent_pid = r.parent_pid;
    process.start_unix_ns = r.start_unix_ns;
    process.tools = r.tools;
    process.forked = r.forked != 0;
    if (!strings.empty()) {
      process.executable = strings.front();
      process.arguments.assign(strings.begin() + 1, strings.end());
    }
    output_.profile().processes.push_back(std::move(process));
  }

  void take(const AssayMachine &r, Bytes tail) {
    auto names = read_strings(tail);
    names.resize(std::max<size_t>(names.size(), 3));
    process().machine = Machine{r.cpus,     r.page_bytes, r.line_bytes, r.l1d_bytes, r.l2_bytes,
                                r.l3_bytes, names[0],     names[1],     names[2]};
  }

  void take(const AssayOptions &, Bytes tail) { process().options = text(tail); }

  void take(const AssayModule &r, Bytes tail) {
    auto strings = read_strings(tail);
    if (r.module == 0 || modules_.count(r.module) || r.build_id_size > 32)
      base::fail("module number or build id");
    const uint64_t words[] = {r.build_id0, r.build_id1, r.build_id2, r.build_id3};
    std::vector<uint8_t> build_id(r.build_id_size);
    if (!build_id.empty())
      std::memcpy(build_id.data(), words, build_id.size());
    std::string module_path = strings.empty() ? "" : strings.front();
    ModuleId id = output_.module(module_path, build_id, r.instrumented != 0);
    modules_[r.module] = id;
    mapping_of_[r.module] = process().mappings.size();
    process().mappings.push_back({id, r.start, r.end, r.bias, r.loaded_us, std::nullopt});
  }

  void take(const AssayModuleUnload &r, Bytes) {
    auto mapping = mapping_of_.find(static_cast<uint32_t>(r.module));
    if (mapping == mapping_of_.end() || r.module > UINT32_MAX)
      base::fail("unload of an unknown module");
    process().mappings[mapping->second].unloaded_us = r.unloaded_us;
  }

  void take(const AssaySites &r, Bytes tail) {
    auto module = modules_.find(static_cast<uint32_t>(r.module));
    if (module == modules_.end() || r.module > UINT32_MAX)
      base::fail("sites of an unknown module");
    base::ByteReader reader(tail, "sites");
    while (!reader.at_end()) {
      auto site = reader.read<AssaySite>();
      if (site.size < sizeof(AssaySite) || site.size % 8 != 0)
        base::fail("size of a site");
      auto body = reader.bytes(site.size - sizeof(AssaySite));
      base::ByteReader entry(body, "site");
      if (site.kind == ASSAY_SITE_UNIT)
        output_.declare(module->second, read_unit(entry));
      if (site.kind != ASSAY_SITE_TYPE && site.kind != ASSAY_SITE_OLD_UNIT)
        continue;
      auto raw = entry.read<AssaySiteType>();
      std::string name(entry.text(raw.name_length));
      if (site.kind == ASSAY_SITE_OLD_UNIT) {
        output_.declare(module->second, Unit{name,
                                             {static_cast<uint32_t>(raw.size),
                                              static_cast<uint32_t>(raw.size >> 32)},
                                             assay_tools_or_default(raw.hash)});
        continue;
      }
      TypeId id = output_.type({raw.hash, name, raw.size});
      output_.declare(module->second, id);
      types_by_short_id_[static_cast<uint32_t>(raw.hash)].push_back({module->second, id});
    }
    // Only the compiler makes sites.
    output_.profile().modules[module->second.v].instrumented = true;
  }

  void take(const AssayContext &r, Bytes tail) {
    if (r.context == 0 || tail.size() % 8 != 0)
      base::fail("context number or frames");
    FileContext context{r.type, r.origin, r.cut != 0, std::vector<uint64_t>(tail.size() / 8)};
    if (!tail.empty())
      std::memcpy(context.frames.data(), tail.data(), tail.size());
    auto [known, is_new] = contexts_.try_emplace(r.context, context);
    if (!is_new && known->second != context)
      lose(ASSAY_LOSS_foreign_context, 1);
  }

  void take(const AssayHeapFreed &r, Bytes) {
    HeapContext &context = section_.contexts[number(r.context)];
    HeapContext delta;
    delta.freed = r.hib;
    delta.freed_histograms = r.histograms;
    merge_heap(context, delta, 1);
  }

  void take(const AssayHeapLive &r, Bytes) {
    ContextNumber context = number(r.context);
    LiveBlock &block = walk(r.walk).live[context];
    HeapContext sum, more;
    sum.live = block.hib;
    sum.live_histograms = block.histograms;
    more.live = r.hib;
    more.live_histograms = r.histograms;
    merge_heap(sum, more, 0);
    block.hib = sum.live;
    block.histograms = sum.live_histograms;
  }

  void take(const AssayHeapWalk &r, Bytes) {
    section_.complete_walk = std::move(walk(r.walk));
    section_.walk = WalkBlocks();
    section_.walk_number = 0;
    process().walk = Walk{r.walk, r.time_us, r.objects, r.bytes};
  }

  void take(const AssayHeapPeak &r, Bytes) {
    HeapContext &context = section_.contexts[number(r.context)];
    context.peak_bytes = r.peak_bytes;
    context.at_peak_bytes = r.at_peak_bytes;
  }

  void take(const AssayRecursion &r, Bytes) {
    if (r.count == 0 || r.min == 0 || r.min > r.max)
      base::fail("levels of a recursion");
    section_.recursions[number(r.context)] = {r.count, r.levels, r.min, r.max, r.frame};
  }

  void take(const AssayHeapFreeContext &r, Bytes) {
    HeapFreedAt &place = section_.freed_at[{number(r.context), number(r.free_context)}];
    place.count += r.count;
    place.bytes += r.bytes;
  }

  void take(const AssayHeapTimeline &r, Bytes) {
    process().timeline.push_back({r.time_us, r.live_objects, r.live_bytes, r.peak_bytes});
  }

  void take(const AssayNonHeap &r, Bytes tail) {
    if (r.kind != ASSAY_NON_HEAP_GLOBALS && r.kind != ASSAY_NON_HEAP_STACK)
      base::fail("kind of memory outside the heap");
    if (tail.size() % sizeof(AssayBlockCounts) != 0)
      base::fail("blocks outside the heap");
    auto &blocks = r.walk ? walk(r.walk).non_heap : section_.non_heap;
    base::ByteReader reader(tail, "blocks");
    while (!reader.at_end()) {
      auto block = reader.read<AssayBlockCounts>();
      Counts &counts = blocks[{r.kind, r.owner, block.offset}];
      counts.reads += block.reads;
      counts.writes += block.writes;
    }
  }

  void take(const AssayReset &r, Bytes) {
    WorkingSetReader working_set = std::move(section_.working_set);
    section_ = Section();
    section_.working_set = std::move(working_set);
    section_.working_set.reset();
    process().timeline.clear();
    process().walk.reset();
    process().reset_us = r.time_us;
  }

  void take(const AssayMark &r, Bytes tail) { process().marks.push_back({r.time_us, text(tail)}); }

  void take(const AssayEvent &r, Bytes tail) {
    EventSum &sum = section_.events[{number(r.context), text(tail)}];
    sum.count += r.count;
    sum.weight += r.weight;
  }

  void take(const AssayOrigin &r, Bytes tail) {
    if (r.origin == 0 || (r.kind != ASSAY_ORIGIN_POOL && r.kind != ASSAY_ORIGIN_MMAP))
      base::fail("number or kind of an origin");
    Origin origin{r.kind, text(tail)};
    auto [known, is_new] = origins_.try_emplace(r.origin, origin);
    if (!is_new && known->second != origin)
      base::fail("two origins with one number");
  }

  void take(const AssayCounterMode &r, Bytes) {
    if ((r.mode & ASSAY_COUNTERS_LAYOUT) > ASSAY_COUNTERS_FINE)
      base::fail("layout of counters");
    process().counters = r.mode;
  }

  void take(const AssayLoss &r, Bytes) {
    if (r.kind > UINT32_MAX)
      base::fail("kind of loss");
    lose(static_cast<uint32_t>(r.kind), r.count);
  }

  void take(const AssayWorkingSetMode &r, Bytes) {
    process();
    section_.working_set.take(r);
  }
  void take(const AssayWorkingSetSnapshot &r, Bytes tail) {
    section_.working_set.take(r, text(tail));
  }
  void take(const AssayWorkingSetLines &r, Bytes tail) { section_.working_set.take(r, tail); }
  void take(const AssayWorkingSetOwners &r, Bytes tail) { section_.working_set.take(r, tail); }
  void take(const AssayWorkingSetStack &r, Bytes) { section_.working_set.take(r); }
  void take(const AssayRegion &r, Bytes tail) {
    auto names = read_strings(tail);
    section_.working_set.take(r, names.empty() ? "" : names.front());
  }

  void take(const AssayEnd &r, Bytes) { process().ends.push_back({r.reason, r.status, r.time_us}); }

  static std::vector<std::string> read_strings(Bytes tail) {
    std::vector<std::string> strings;
    base::ByteReader reader(tail, "strings");
    while (!reader.at_end())
      strings.emplace_back(reader.zero_terminated());
    return strings;
  }

  static std::string text(Bytes tail) {
    return std::string(base::ByteReader(tail).text(tail.size()));
  }

  // What the walk with this number has found so far: a new number begins a new walk.
  WalkBlocks &walk(uint64_t walk_number) {
    if (walk_number != section_.walk_number) {
      section_.walk = WalkBlocks();
      section_.walk_number = walk_number;
    }
    return section_.walk;
  }

  static ContextNumber number(uint64_t context) {
    if (context == 0 || context > UINT32_MAX)
      base::fail("context number");
    return static_cast<ContextNumber>(context);
  }

  // The process that the current section is about; a file without a Program record gets one that is
  // known by the pid of the file header alone.
  Process &process() {
    auto &processes = output_.profile().processes;
    if (processes.empty()) {
      processes.emplace_back();
      processes.back().pid = container_.header().pid;
      processes.back().start_unix_ns = container_.header().start_unix_ns;
    }
    return processes.back();
  }

  void lose(uint32_t kind, uint64_t count) { output_.profile().losses[kind] += count; }

  void close_section() {
    for (auto &[context, live] : section_.complete_walk.live) {
      HeapContext &into = section_.contexts[context];
      into.live = live.hib;
      into.live_histograms = live.histograms;
    }
    for (auto &[context, recursion] : section_.recursions)
      if (auto known = section_.contexts.find(context); known != section_.contexts.end())
        known->second.recursion = recursion;
    // A context is two kilobytes: each is let go as soon as it is added.
    for (auto gained = section_.contexts.begin(); gained != section_.contexts.end();
         gained = section_.contexts.erase(gained))
      merge_heap(sums_[gained->first], gained->second, 0);
    for (auto &[key, place] : section_.freed_at) {
      HeapFreedAt &sum = freed_at_[key];
      sum.count += place.count;
      sum.bytes += place.bytes;
    }
    for (auto *blocks : {&section_.non_heap, &section_.complete_walk.non_heap})
      for (auto &[place, counts] : *blocks) {
        Counts &sum = non_heap_[place];
        sum.reads += counts.reads;
        sum.writes += counts.writes;
      }
    for (auto &[key, event] : section_.events) {
      EventSum &sum = events_[key];
      sum.count += event.count;
      sum.weight += event.weight;
    }
    if (section_.working_set.exists())
      working_sets_.push_back(
          {output_.profile().processes.size() - 1, std::move(section_.working_set)});
    section_ = Section();
    mapping_of_.clear();
  }

  CodeLocation location(uint64_t frame) const {
    uint64_t module = frame >> ASSAY_FRAME_MODULE_SHIFT;
    auto known = modules_.find(static_cast<uint32_t>(module));
    uint64_t offset = frame & ((1ULL << ASSAY_FRAME_MODULE_SHIFT) - 1);
    return {known == modules_.end() ? ModuleId() : known->second, offset};
  }

  Stack stack_of(ContextNumber context) {
    Stack stack;
    auto known = contexts_.find(context);
    if (known == contexts_.end()) {
      const auto &processes = output_.profile().processes;
      bool unfinished = !processes.empty() && processes.back().ends.empty();
      if (!unfinished) // else it was not written any more
        lose(ASSAY_LOSS_bad_record, 1);
      return stack;
    }
    stack.cut = known->second.cut;
    for (uint64_t frame : known->second.frames)
      stack.frames.push_back(location(frame));
    return stack;
  }

  // Short ids may be shared by two types; the module of the innermost frame that declares one
  // decides.
  TypeId type_of(uint32_t short_id, const Stack &stack) {
    if (short_id == 0)
      return TypeId();
    auto candidates = types_by_short_id_.find(short_id);
    if (candidates == types_by_short_id_.end())
      return output_.type({short_id, "", 0});
    const auto &declared = candidates->second;
    if (declared.size() > 1 && declared.size() < 1000)
      for (const CodeLocation &frame : stack.frames)
        for (auto [module, type] : declared)
          if (module == frame.module)
            return type;
    return declared.front().second;
  }

  Origin origin_of(uint32_t origin) {
    if (origin == 0)
      return Origin();
    auto known = origins_.find(origin);
    if (known != origins_.end())
      return known->second;
    lose(ASSAY_LOSS_bad_record, 1);
    return Origin();
  }

  void resolve_events() {
    for (auto &[key, sum] : events_)
      output_.add(Event{output_.stack(stack_of(key.first)), key.second, sum.count, sum.weight});
  }

  void resolve_non_heap() {
    for (auto &[place, counts] : non_heap_) {
      auto [kind, owner, offset] = place;
      NonHeapBlock block{kind, ModuleId(), 0, offset, counts.reads, counts.writes};
      if (kind == ASSAY_NON_HEAP_STACK)
        block.thread = owner;
      else if (auto known = modules_.find(owner); known != modules_.end())
        block.module = known->second;
      output_.add(block);
    }
  }

  void resolve_working_sets() {
    for (auto &[index, reader] : working_sets_)
      output_.profile().processes[index].working_set = reader.finish([this](ContextNumber context) {
        Stack stack = stack_of(context);
        auto known = contexts_.find(context);
        FileContext facts = known == contexts_.end() ? FileContext() : known->second;
        return LineOwner{output_.stack(stack), type_of(facts.type, stack), origin_of(facts.origin)};
      });
  }

  void resolve_contexts() {
    // In order of number: what is met first does not depend on a hash table.
    std::map<ContextNumber, HeapContext *> ordered;
    for (auto &[number, sum] : sums_)
      ordered[number] = &sum;
    for (auto &[key, place] : freed_at_)
      ordered.try_emplace(key.first, nullptr);
    output_.profile().heap.reserve(ordered.size());
    std::unordered_map<ContextNumber, StackId> free_stacks;
    auto place = freed_at_.begin();
    for (auto &[number, sum] : ordered) {
      Stack stack = stack_of(number);
      auto known = contexts_.find(number);
      FileContext context = known == contexts_.end() ? FileContext() : known->second;
      TypeId type = type_of(context.type, stack);
      Origin origin = origin_of(context.origin);
      HeapContext gained = sum ? *sum : HeapContext();
      for (; place != freed_at_.end() && place->first.first == number; ++place) {
        auto [free_stack, is_new] = free_stacks.try_emplace(place->first.second);
        if (is_new)
          free_stack->second = output_.stack(stack_of(place->first.second));
        gained.freed_at.push_back({free_stack->second, place->second.count, place->second.bytes});
      }
      sums_.erase(number);
      merge_heap(output_.heap_context(output_.stack(stack), type, origin), gained, 0);
    }
  }

  std::string path_;
  ContainerReader container_;
  Assembler output_;
  Section section_;
  std::unordered_map<uint32_t, ModuleId> modules_;
  std::unordered_map<uint32_t, size_t> mapping_of_; // of this section: index into Process::mappings
  std::unordered_map<uint32_t, std::vector<std::pair<ModuleId, TypeId>>> types_by_short_id_;
  std::unordered_map<ContextNumber, FileContext> contexts_;
  std::unordered_map<uint32_t, Origin> origins_;
  std::unordered_map<ContextNumber, HeapContext> sums_;
  std::map<std::pair<ContextNumber, ContextNumber>, HeapFreedAt> freed_at_;
  std::map<std::pair<ContextNumber, std::string>, EventSum> events_;
  std::map<NonHeapSlot, Counts> non_heap_;
  std::vector<std::pair<size_t, WorkingSetReader>> working_sets_; // index of the process
};

} // namespace

Profile read_bytes(std::span<const std::byte> bytes, const std::string &path) {
  return FileReader(bytes, path).read();
}

} // namespace profile
