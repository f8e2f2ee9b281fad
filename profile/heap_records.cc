// The heap's records: heap info blocks of what ended (deltas, joined in the order of the file),
// walks over what is alive (the last complete one counts), peaks, places of frees, and accesses
// outside the heap.

#include "profile/heap_records.h"

#include "abi/tools.h"
#include "base/byte_reader.h"
#include "profile/tool.h"
#include "profile/values.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace profile {
namespace {

using Bytes = std::span<const std::byte>;
using NonHeapSlot = std::tuple<uint32_t, uint32_t, uint64_t>; // kind, owner, offset
using FreeSite = std::pair<ContextNumber, ContextNumber>;     // of the object, of the free

struct Counts {
  uint64_t reads = 0, writes = 0;
  void add(uint64_t more_reads, uint64_t more_writes) {
    reads += more_reads;
    writes += more_writes;
  }
};

struct LiveBlock {
  LiveBlock() : histograms() { assay_hib_clear(&hib); }
  AssayHib hib;
  AssayHibHistograms histograms;
};

struct WalkBlocks {
  std::unordered_map<ContextNumber, LiveBlock> live;
  std::map<NonHeapSlot, Counts> non_heap;
};

// What one process said.
struct HeapProcessRecords {
  std::unordered_map<ContextNumber, HeapContext> contexts; // stack, type, live: not yet
  WalkBlocks walk;                                         // of walk_number, perhaps incomplete
  WalkBlocks complete_walk;
  uint64_t walk_number = 0;
  std::map<NonHeapSlot, Counts> non_heap; // of modules that were unloaded
  std::map<FreeSite, HeapFreedAt> freed_at;
  std::unordered_map<ContextNumber, Recursion> recursions; // of contexts of any tool
};

class HeapReader : public ToolReader {
public:
  bool take(const RecordView &record, Process &process) override {
    process_ = &process;
    return dispatch(*this, record);
  }

  void on(const AssayHeapFreed &r, Bytes) {
    HeapContext &context = of_process_.contexts[context_number(r.context)];
    HeapContext delta;
    delta.freed = r.hib;
    delta.freed_histograms = r.histograms;
    merge_heap(context, delta, 1);
  }

  void on(const AssayHeapLive &r, Bytes) {
    ContextNumber context = context_number(r.context);
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

  void on(const AssayHeapWalk &r, Bytes) {
    of_process_.complete_walk = std::move(walk(r.walk));
    of_process_.walk = WalkBlocks();
    of_process_.walk_number = 0;
    process_->walk = Walk{r.walk, r.time_us, r.objects, r.bytes};
  }

  void on(const AssayHeapPeak &r, Bytes) {
    HeapContext &context = of_process_.contexts[context_number(r.context)];
    context.peak_bytes = r.peak_bytes;
    context.at_peak_bytes = r.at_peak_bytes;
  }

  void on(const AssayRecursion &r, Bytes) {
    if (r.count == 0 || r.min == 0 || r.min > r.max)
      base::fail("levels of a recursion");
    of_process_.recursions[context_number(r.context)] = {r.count, r.levels, r.min, r.max, r.frame};
  }

  void on(const AssayHeapFreeContext &r, Bytes) {
    HeapFreedAt &site =
        of_process_.freed_at[{context_number(r.context), context_number(r.free_context)}];
    site.count += r.count;
    site.bytes += r.bytes;
  }

  void on(const AssayHeapTimeline &r, Bytes) {
    process_->timeline.push_back({r.time_us, r.live_objects, r.live_bytes, r.peak_bytes});
  }

  void on(const AssayNonHeap &r, Bytes tail) {
    if (r.kind != ASSAY_NON_HEAP_GLOBALS && r.kind != ASSAY_NON_HEAP_STACK)
      base::fail("kind of memory outside the heap");
    if (tail.size() % sizeof(AssayBlockCounts) != 0)
      base::fail("blocks outside the heap");
    auto &blocks = r.walk ? walk(r.walk).non_heap : of_process_.non_heap;
    base::ByteReader reader(tail, "blocks");
    while (!reader.at_end()) {
      auto block = reader.read<AssayBlockCounts>();
      blocks[{r.kind, r.owner, block.offset}].add(block.reads, block.writes);
    }
  }

  void on(const AssayCounterMode &r, Bytes) {
    if ((r.mode & ASSAY_COUNTERS_LAYOUT) > ASSAY_COUNTERS_FINE)
      base::fail("layout of counters");
    process_->counters = r.mode;
  }

  void reset(Process &process) override {
    of_process_ = HeapProcessRecords();
    process.timeline.clear();
    process.walk.reset();
  }

  void end_process_records(Process &) override {
    for (auto &[context, live] : of_process_.complete_walk.live) {
      HeapContext &into = of_process_.contexts[context];
      into.live = live.hib;
      into.live_histograms = live.histograms;
    }
    for (auto &[context, recursion] : of_process_.recursions)
      if (auto known = of_process_.contexts.find(context); known != of_process_.contexts.end())
        known->second.recursion = recursion;
    uint64_t at_peak = 0;
    for (const auto &[context, gained] : of_process_.contexts)
      at_peak += gained.at_peak_bytes;
    if (at_peak > at_peak_) {
      for (auto &[context, sum] : sums_)
        sum.at_peak_bytes = 0;
      at_peak_ = at_peak;
    } else {
      for (auto &[context, gained] : of_process_.contexts)
        gained.at_peak_bytes = 0;
    }
    // A context is two kilobytes: each is let go as soon as it is added.
    for (auto gained = of_process_.contexts.begin(); gained != of_process_.contexts.end();
         gained = of_process_.contexts.erase(gained))
      merge_heap(sums_[gained->first], gained->second, 0);
    for (auto &[key, site] : of_process_.freed_at) {
      HeapFreedAt &sum = freed_at_[key];
      sum.count += site.count;
      sum.bytes += site.bytes;
    }
    for (auto *blocks : {&of_process_.non_heap, &of_process_.complete_walk.non_heap})
      for (auto &[slot, counts] : *blocks)
        non_heap_[slot].add(counts.reads, counts.writes);
    of_process_ = HeapProcessRecords();
  }

  void resolve(FileNumbers &numbers, Assembler &output) override {
    resolve_contexts(numbers, output);
    for (auto &[slot, counts] : non_heap_) {
      auto [kind, owner, offset] = slot;
      NonHeapBlock block{kind, ModuleId(), 0, offset, counts.reads, counts.writes};
      if (kind == ASSAY_NON_HEAP_STACK)
        block.thread = owner;
      else
        block.module = numbers.module(owner);
      add(output, block);
    }
  }

private:
  // What the walk with this number has found so far: a new number begins a new walk.
  WalkBlocks &walk(uint64_t number) {
    if (number != of_process_.walk_number) {
      of_process_.walk = WalkBlocks();
      of_process_.walk_number = number;
    }
    return of_process_.walk;
  }

  void resolve_contexts(FileNumbers &numbers, Assembler &output) {
    // In order of number: what is met first does not depend on a hash table.
    std::map<ContextNumber, HeapContext *> ordered;
    for (auto &[number, sum] : sums_)
      ordered[number] = &sum;
    for (auto &[key, site] : freed_at_)
      ordered.try_emplace(key.first, nullptr);
    output.profile().heap.reserve(ordered.size());
    std::unordered_map<ContextNumber, StackId> free_stacks;
    auto site = freed_at_.begin();
    for (auto &[number, sum] : ordered) {
      auto [stack, type, origin] = numbers.context(number);
      HeapContext gained = sum ? *sum : HeapContext();
      for (; site != freed_at_.end() && site->first.first == number; ++site) {
        auto [free_stack, is_new] = free_stacks.try_emplace(site->first.second);
        if (is_new)
          free_stack->second = numbers.stack(site->first.second);
        gained.freed_at.push_back({free_stack->second, site->second.count, site->second.bytes});
      }
      sums_.erase(number);
      merge_heap(heap_context(output, stack, type, origin), gained, 0);
    }
  }

  Process *process_ = nullptr;
  HeapProcessRecords of_process_;
  std::unordered_map<ContextNumber, HeapContext> sums_;
  uint64_t at_peak_ = 0; // of all of them
  std::map<FreeSite, HeapFreedAt> freed_at_;
  std::map<NonHeapSlot, Counts> non_heap_;
};

// Free sites are appended while assembling; equal ones become one here.
void combine_free_sites(std::vector<HeapFreedAt> &sites) {
  std::sort(sites.begin(), sites.end());
  size_t kept = 0;
  for (const HeapFreedAt &site : sites) {
    if (kept && sites[kept - 1].stack == site.stack) {
      sites[kept - 1].count += site.count;
      sites[kept - 1].bytes += site.bytes;
    } else {
      sites[kept++] = site;
    }
  }
  sites.resize(kept);
}

class HeapSums : public ToolSums {
public:
  HeapContext &context(Profile &profile, StackId stack, TypeId type, const Origin &origin) {
    auto [known, is_new] = contexts_.try_emplace({stack, type, origin}, profile.heap.size());
    if (is_new) {
      profile.heap.emplace_back();
      profile.heap.back().stack = stack;
      profile.heap.back().type = type;
      profile.heap.back().origin = origin;
    }
    return profile.heap[known->second];
  }

  void add(Profile &profile, const NonHeapBlock &block) {
    auto [known, is_new] = non_heap_.try_emplace(
        {block.kind, block.module, block.thread, block.offset}, profile.non_heap.size());
    if (is_new)
      profile.non_heap.push_back({block.kind, block.module, block.thread, block.offset, 0, 0});
    NonHeapBlock &sum = profile.non_heap[known->second];
    sum.reads += block.reads;
    sum.writes += block.writes;
  }

  void add(Profile &into, const Profile &other, const NewIds &ids) override {
    if (!at_peak_)
      at_peak_ = at_peak(into);
    const uint64_t of_other = at_peak(other);
    const bool is_larger = of_other > *at_peak_ ||
                           (of_other && of_other == *at_peak_ && who_held(other) > who_held(into));
    if (is_larger) {
      at_peak_ = of_other;
      for (HeapContext &each : into.heap)
        each.at_peak_bytes = 0;
    }
    for (HeapContext each : other.heap) {
      translate(each, ids);
      if (!is_larger)
        each.at_peak_bytes = 0;
      HeapContext &sum = context(into, each.stack, each.type, each.origin);
      const AssayHib freed = sum.freed, live = sum.live;
      merge_heap(sum, each, 0);
      choose_ends(sum.freed, freed, each.freed);
      choose_ends(sum.live, live, each.live);
    }
    for (NonHeapBlock each : other.non_heap) {
      ids.translate(each.module);
      add(into, each);
    }
  }

  void finish(Profile &profile, const NewIds &ids) override {
    for (HeapContext &each : profile.heap) {
      translate(each, ids);
      combine_free_sites(each.freed_at);
    }
    std::sort(profile.heap.begin(), profile.heap.end(),
              [](const HeapContext &a, const HeapContext &b) {
                return std::tie(a.stack, a.type, a.origin) < std::tie(b.stack, b.type, b.origin);
              });
    for (NonHeapBlock &block : profile.non_heap)
      ids.translate(block.module);
    std::sort(profile.non_heap.begin(), profile.non_heap.end());
  }

private:
  static uint64_t at_peak(const Profile &profile) {
    uint64_t bytes = 0;
    for (const HeapContext &each : profile.heap)
      bytes += each.at_peak_bytes;
    return bytes;
  }

  // What of two processes was first and last, by their own clocks: neither is the later one.
  static void choose_ends(AssayHib &sum, const AssayHib &a, const AssayHib &b) {
    if (!a.alloc_count || !b.alloc_count)
      return;
    auto first = [](const AssayHib &h) {
      return std::tie(h.first_alloc_us, h.first_free_us, h.first_alloc_cpu, h.first_free_cpu);
    };
    auto last = [](const AssayHib &h) {
      return std::tie(h.last_free_us, h.last_alloc_us, h.last_free_cpu, h.last_alloc_cpu);
    };
    const AssayHib &begins = first(b) < first(a) ? b : a, &ends = last(a) < last(b) ? b : a;
#define ASSAY_TAKE_first(name) sum.name = begins.name;
#define ASSAY_TAKE_last(name) sum.name = ends.name;
#define ASSAY_TAKE_sum(name)
#define ASSAY_TAKE_min(name)
#define ASSAY_TAKE_max(name)
#define ASSAY_TAKE_link(name)
#define ASSAY_HIB(type, name, merge, unit) ASSAY_TAKE_##merge(name)
#include "abi/hib.def"
#undef ASSAY_TAKE_first
#undef ASSAY_TAKE_last
#undef ASSAY_TAKE_sum
#undef ASSAY_TAKE_min
#undef ASSAY_TAKE_max
#undef ASSAY_TAKE_link
  }

  // A number that says which contexts held how much at the peak, whatever their ids: of two equal peaks it chooses the
  // same one in any order.
  static uint64_t who_held(const Profile &profile) {
    constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
    auto join = [](uint64_t &hash, uint64_t with) { hash = (hash ^ (hash >> 29) ^ with) * kPrime; };
    std::vector<uint64_t> modules;
    for (const Module &module : profile.modules)
      modules.push_back(file_hash(module.build_id, module.path));
    uint64_t sum = 0;
    for (const HeapContext &each : profile.heap) {
      if (!each.at_peak_bytes)
        continue;
      uint64_t hash = each.at_peak_bytes;
      join(hash, each.type.known() ? profile.types[each.type.v].hash : 0);
      if (each.stack.known())
        for (const CodeLocation &frame : profile.stacks[each.stack.v].frames) {
          join(hash, frame.module.known() ? modules[frame.module.v] : 0);
          join(hash, frame.offset);
        }
      sum += hash;
    }
    return sum;
  }

  static void translate(HeapContext &context, const NewIds &ids) {
    ids.translate(context.stack);
    ids.translate(context.type);
    for (HeapFreedAt &site : context.freed_at)
      ids.translate(site.stack);
  }

  std::map<std::tuple<StackId, TypeId, Origin>, size_t> contexts_;
  std::map<std::tuple<uint32_t, ModuleId, uint32_t, uint64_t>, size_t> non_heap_;
  std::optional<uint64_t> at_peak_; // of what things are added to
};

void write_context(const HeapContext &context, const Process &carrier, RecordSink &sink) {
  uint64_t self = sink.context(context.stack, context.type, context.origin);
  if (context.freed.alloc_count || context.freed.realloc_count)
    sink.out().record(ASSAY_RECORD_HeapFreed,
                      AssayHeapFreed{self, context.freed, context.freed_histograms});
  if (context.live.alloc_count || context.live.realloc_count) {
    if (!carrier.walk)
      base::fail("this profile has live objects but no walk that found them");
    sink.out().record(ASSAY_RECORD_HeapLive, AssayHeapLive{carrier.walk->number, self, context.live,
                                                           context.live_histograms});
  }
  sink.out().record(ASSAY_RECORD_HeapPeak,
                    AssayHeapPeak{self, context.peak_bytes, context.at_peak_bytes});
  if (const Recursion &r = context.recursion; r.count)
    sink.out().record(ASSAY_RECORD_Recursion, AssayRecursion{static_cast<uint32_t>(self), r.frame,
                                                             r.count, r.levels, r.min, r.max});
  for (const HeapFreedAt &site : context.freed_at)
    sink.out().record(ASSAY_RECORD_HeapFreeContext,
                      AssayHeapFreeContext{self, sink.context(site.stack), site.count, site.bytes});
}

// A record for each owner; several where its blocks would not fit into one.
void write_non_heap(const Profile &profile, const Process &carrier, RecordSink &sink) {
  if (!profile.non_heap.empty() && !carrier.walk)
    base::fail("this profile has accesses outside the heap but no walk that found them");
  constexpr size_t kBlocksOfRecord = 1 << 20;
  std::vector<AssayBlockCounts> blocks;
  for (size_t i = 0; i < profile.non_heap.size(); i++) {
    const NonHeapBlock &block = profile.non_heap[i];
    blocks.push_back({block.offset, block.reads, block.writes});
    const NonHeapBlock *next = i + 1 < profile.non_heap.size() ? &profile.non_heap[i + 1] : nullptr;
    if (next && next->kind == block.kind && next->module == block.module &&
        next->thread == block.thread && blocks.size() < kBlocksOfRecord)
      continue;
    uint32_t owner = block.kind == ASSAY_NON_HEAP_STACK ? block.thread : sink.module(block.module);
    sink.out().record(ASSAY_RECORD_NonHeap, AssayNonHeap{carrier.walk->number, block.kind, owner},
                      std::as_bytes(std::span(blocks)));
    blocks.clear();
  }
}

// Live blocks and blocks outside the heap belong to a walk of their process.
void write(const Profile &profile, const Process &process, bool is_carrier, RecordSink &sink) {
  if (process.counters)
    sink.out().record(ASSAY_RECORD_CounterMode, AssayCounterMode{process.counters});
  for (const TimelinePoint &point : process.timeline)
    sink.out().record(
        ASSAY_RECORD_HeapTimeline,
        AssayHeapTimeline{point.time_us, point.live_objects, point.live_bytes, point.peak_bytes});
  if (is_carrier) {
    for (const HeapContext &context : profile.heap)
      write_context(context, process, sink);
    write_non_heap(profile, process, sink);
  }
  if (process.walk)
    sink.out().record(ASSAY_RECORD_HeapWalk,
                      AssayHeapWalk{process.walk->number, process.walk->time_us,
                                    process.walk->objects, process.walk->bytes});
}

HeapSums &sums_of(Assembler &assembler) {
  return static_cast<HeapSums &>(assembler.sums(ASSAY_TOOL_heap));
}

constexpr uint32_t kLosses[] = {ASSAY_LOSS_forked_use, ASSAY_LOSS_shared_counters};

} // namespace

extern const ToolRecords heap_records;
const ToolRecords heap_records = {
    .follows_objects = true,
    .losses = kLosses,
    .reader = []() -> std::unique_ptr<ToolReader> { return std::make_unique<HeapReader>(); },
    .sums = []() -> std::unique_ptr<ToolSums> { return std::make_unique<HeapSums>(); },
    .can_carry_sums = [](const Process &process) { return process.walk.has_value(); },
    .write = write,
};

HeapContext &heap_context(Assembler &assembler, StackId stack, TypeId type, const Origin &origin) {
  return sums_of(assembler).context(assembler.profile(), stack, type, origin);
}

void add(Assembler &assembler, const NonHeapBlock &block) {
  sums_of(assembler).add(assembler.profile(), block);
}

void merge_heap(HeapContext &into, const HeapContext &later, int bridge) {
  assay_hib_merge(&into.freed, &later.freed, bridge);
  assay_hib_merge(&into.live, &later.live, 0);
  assay_histograms_add(&into.freed_histograms, &later.freed_histograms);
  assay_histograms_add(&into.live_histograms, &later.live_histograms);
  into.peak_bytes = std::max(into.peak_bytes, later.peak_bytes);
  into.at_peak_bytes = std::max(into.at_peak_bytes, later.at_peak_bytes);
  into.recursion.add(later.recursion);
  into.freed_at.insert(into.freed_at.end(), later.freed_at.begin(), later.freed_at.end());
}

} // namespace profile
