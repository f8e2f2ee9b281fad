// From the model to records: what `assay merge` stores, and what tests build profiles with.
//
//   FileHeader (pid 0 when there are several processes)
//   for each process:  Program Machine Options CounterMode Module… ModuleUnload… Mark… Reset
//   HeapTimeline… HeapWalk End…
//   in the last one, before its HeapWalk: Sites… Origin… Context… HeapFreed… HeapLive… HeapPeak…
//   HeapFreeContext… Event… NonHeap… Loss…
//
// Live blocks and blocks outside the heap belong to a walk of the section that they are in, so the
// process that comes last is one with a walk, if there is any; the reader sorts processes again. `killed` is not written: a
// process without an End record says it.

#include "profile/container.h"
#include "profile/profile.h"
#include "profile/write_working_set.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

namespace profile {
namespace {

class FileWriter {
public:
  explicit FileWriter(const Profile &profile)
      : profile_(profile), out_(header_pid(profile), start_of(profile)) {}

  const ContainerWriter &write() & {
    std::vector<Process> processes = profile_.processes;
    // The last one carries the contexts.
    std::sort(processes.begin(), processes.end(), [](const Process &a, const Process &b) {
      return a.walk.has_value() != b.walk.has_value() ? b.walk.has_value() : a < b;
    });
    if (processes.empty())
      processes.emplace_back();
    for (const Process &process : processes)
      number_modules(process);
    for (const Process &process : processes) {
      bool last = &process == &processes.back();
      write_process(process);
      if (last)
        write_contexts(process);
      if (process.walk)
        out_.record(ASSAY_RECORD_HeapWalk,
                    AssayHeapWalk{process.walk->number, process.walk->time_us,
                                  process.walk->objects, process.walk->bytes});
      for (const Ending &end : process.ends)
        out_.record(ASSAY_RECORD_End, AssayEnd{end.reason, end.status, end.time_us});
    }
    for (auto [kind, count] : profile_.losses)
      if (kind != ASSAY_LOSS_killed)
        out_.record(ASSAY_RECORD_Loss, AssayLoss{kind, count});
    return out_;
  }

private:
  static uint32_t header_pid(const Profile &profile) {
    return profile.processes.size() == 1 ? static_cast<uint32_t>(profile.processes[0].pid) : 0;
  }
  static uint64_t start_of(const Profile &profile) {
    return profile.processes.empty() ? 0 : profile.processes[0].start_unix_ns;
  }

  // Frames have 16 bits for the number of a module: the first mapping of each module gets a low
  // one.
  void number_modules(const Process &process) {
    for (const Mapping &mapping : process.mappings)
      module_numbers_.try_emplace(mapping.module,
                                  static_cast<uint32_t>(module_numbers_.size()) + 1);
  }

  uint32_t number(ModuleId module) const {
    auto known = module_numbers_.find(module);
    return known == module_numbers_.end() ? 0 : known->second;
  }

  void write_process(const Process &process) {
    std::vector<std::string> strings = {process.executable};
    strings.insert(strings.end(), process.arguments.begin(), process.arguments.end());
    out_.record(ASSAY_RECORD_Program,
                AssayProgram{process.pid, process.parent_pid, process.start_unix_ns, process.tools,
                             process.forked},
                string_tail(strings));
    if (const auto &m = process.machine) {
      std::string names[] = {m->cpu_model, m->kernel, m->host};
      out_.record(ASSAY_RECORD_Machine,
                  AssayMachine{m->cpus, m->page_bytes, m->line_bytes, 0, m->l1d_bytes, m->l2_bytes,
                               m->l3_bytes},
                  string_tail(names));
    }
    if (!process.options.empty())
      out_.record(ASSAY_RECORD_Options, AssayOptions{0}, std::as_bytes(std::span(process.options)));
    if (process.counters)
      out_.record(ASSAY_RECORD_CounterMode, AssayCounterMode{process.counters});
    for (const Mapping &mapping : process.mappings)
      write_mapping(mapping);
    for (const Mark &mark : process.marks)
      out_.record(ASSAY_RECORD_Mark, AssayMark{mark.time_us}, std::as_bytes(std::span(mark.name)));
    if (process.reset_us)
      out_.record(ASSAY_RECORD_Reset, AssayReset{*process.reset_us});
    if (process.working_set)
      write_working_set(*process.working_set, out_, [this](const LineOwner &owner) {
        uint32_t type =
            owner.type.known() ? static_cast<uint32_t>(profile_.types[owner.type.v].hash) : 0;
        return write_context(owner.stack, type, owner.origin);
      });
    for (const TimelinePoint &point : process.timeline)
      out_.record(ASSAY_RECORD_HeapTimeline, AssayHeapTimeline{point.time_us, point.live_objects,
                                                               point.live_bytes, point.peak_bytes});
  }

  void write_mapping(const Mapping &mapping) {
    const Module &module = profile_.modules[mapping.module.v];
    uint32_t primary = number(mapping.module);
    uint32_t this_number = written_.insert(primary).second
                               ? primary
                               : static_cast<uint32_t>(module_numbers_.size()) + ++repeated_;
    AssayModule record = {};
    record.module = this_number;
    record.instrumented = module.instrumented;
    record.start = mapping.start;
    record.end = mapping.end;
    record.bias = mapping.bias;
    record.loaded_us = mapping.loaded_us;
    uint64_t words[4] = {};
    record.build_id_size = static_cast<uint32_t>(std::min<size_t>(module.build_id.size(), 32));
    if (record.build_id_size)
      std::memcpy(words, module.build_id.data(), record.build_id_size);
    record.build_id0 = words[0];
    record.build_id1 = words[1];
    record.build_id2 = words[2];
    record.build_id3 = words[3];
    out_.record(ASSAY_RECORD_Module, record, string_tail(std::span(&module.path, 1)));
    if (mapping.unloaded_us)
      out_.record(ASSAY_RECORD_ModuleUnload, AssayModuleUnload{this_number, *mapping.unloaded_us});
  }

  void write_sites() {
    for (const auto &[module, module_number] : module_numbers_) {
      std::vector<std::byte> tail;
      for (TypeId id : profile_.modules[module.v].types) {
        const Type &type = profile_.types[id.v];
        append_site(tail, ASSAY_SITE_TYPE,
                    AssaySiteType{type.hash, type.size, static_cast<uint32_t>(type.name.size()), 0},
                    {}, type.name);
      }
      for (const Unit &unit : profile_.modules[module.v].units)
        append_site(tail, ASSAY_SITE_UNIT,
                    AssaySiteUnit{unit.tools, static_cast<uint32_t>(unit.modes.size()),
                                  static_cast<uint32_t>(unit.source.size())},
                    unit.modes, unit.source);
      if (!tail.empty())
        out_.record(ASSAY_RECORD_Sites, AssaySites{module_number}, tail);
    }
  }

  // One entry of the SITES section: its fixed part, numbers, a name; each padded to eight bytes.
  template <class Fixed>
  static void append_site(std::vector<std::byte> &to, uint32_t kind, const Fixed &fixed,
                          const std::vector<uint32_t> &numbers, const std::string &name) {
    const size_t begin = to.size();
    auto pad = [&] { to.resize(begin + (to.size() - begin + 7) / 8 * 8); };
    AssaySite site = {kind, 0};
    append(to, std::as_bytes(std::span(&site, 1)));
    append(to, std::as_bytes(std::span(&fixed, 1)));
    append(to, std::as_bytes(std::span(numbers)));
    pad();
    append(to, std::as_bytes(std::span(name)));
    pad();
    site.size = static_cast<uint32_t>(to.size() - begin);
    std::memcpy(to.data() + begin, &site, sizeof site);
  }

  uint32_t write_origin(const Origin &origin) {
    if (origin.kind == 0)
      return 0;
    auto [known, is_new] = origins_.try_emplace(origin, static_cast<uint32_t>(origins_.size()) + 1);
    if (is_new)
      out_.record(ASSAY_RECORD_Origin, AssayOrigin{known->second, origin.kind},
                  std::as_bytes(std::span(origin.name)));
    return known->second;
  }

  uint32_t write_context(StackId stack, uint32_t type, const Origin &origin) {
    auto [known, is_new] =
        contexts_.try_emplace({stack, type, origin}, static_cast<uint32_t>(contexts_.size()) + 1);
    if (is_new) {
      uint32_t origin_number = write_origin(origin);
      std::vector<uint64_t> frames;
      for (const CodeLocation &frame : profile_.stack(stack).frames) {
        uint32_t module = frame.module.known() ? number(frame.module) : 0;
        if (module > UINT16_MAX)
          base::fail("{} modules are more than a profile can number; merge fewer runs",
                     module_numbers_.size());
        frames.push_back(assay_frame(module, frame.offset));
      }
      out_.record(ASSAY_RECORD_Context,
                  AssayContext{known->second, type, profile_.stack(stack).cut, origin_number},
                  std::as_bytes(std::span(frames)));
    }
    return known->second;
  }

  void write_contexts(const Process &carrier) {
    write_sites();
    for (const HeapContext &context : profile_.heap) {
      uint32_t type =
          context.type.known() ? static_cast<uint32_t>(profile_.types[context.type.v].hash) : 0;
      uint64_t self = write_context(context.stack, type, context.origin);
      if (context.freed.alloc_count || context.freed.realloc_count)
        out_.record(ASSAY_RECORD_HeapFreed,
                    AssayHeapFreed{self, context.freed, context.freed_histograms});
      if (context.live.alloc_count || context.live.realloc_count) {
        if (!carrier.walk)
          base::fail("this profile has live objects but no walk that found them");
        out_.record(ASSAY_RECORD_HeapLive, AssayHeapLive{carrier.walk->number, self, context.live,
                                                         context.live_histograms});
      }
      out_.record(ASSAY_RECORD_HeapPeak,
                  AssayHeapPeak{self, context.peak_bytes, context.at_peak_bytes});
      if (const Recursion &r = context.recursion; r.count)
        out_.record(ASSAY_RECORD_Recursion, AssayRecursion{static_cast<uint32_t>(self), r.frame,
                                                           r.count, r.levels, r.min, r.max});
      for (const HeapFreedAt &place : context.freed_at)
        out_.record(ASSAY_RECORD_HeapFreeContext,
                    AssayHeapFreeContext{self, write_context(place.stack, 0, {}), place.count,
                                         place.bytes});
    }
    for (const Event &event : profile_.events)
      out_.record(ASSAY_RECORD_Event,
                  AssayEvent{write_context(event.stack, 0, {}), event.count, event.weight},
                  std::as_bytes(std::span(event.name)));
    write_non_heap(carrier);
  }

  // A record for each owner; several where its blocks would not fit into one.
  void write_non_heap(const Process &carrier) {
    if (!profile_.non_heap.empty() && !carrier.walk)
      base::fail("this profile has accesses outside the heap but no walk that found them");
    constexpr size_t kBlocksOfRecord = 1 << 20;
    std::vector<AssayBlockCounts> blocks;
    for (size_t i = 0; i < profile_.non_heap.size(); i++) {
      const NonHeapBlock &block = profile_.non_heap[i];
      blocks.push_back({block.offset, block.reads, block.writes});
      const NonHeapBlock *next =
          i + 1 < profile_.non_heap.size() ? &profile_.non_heap[i + 1] : nullptr;
      if (next && next->kind == block.kind && next->module == block.module &&
          next->thread == block.thread && blocks.size() < kBlocksOfRecord)
        continue;
      uint32_t owner = block.kind == ASSAY_NON_HEAP_STACK ? block.thread : number(block.module);
      out_.record(ASSAY_RECORD_NonHeap, AssayNonHeap{carrier.walk->number, block.kind, owner},
                  std::as_bytes(std::span(blocks)));
      blocks.clear();
    }
  }

  static void append(std::vector<std::byte> &to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  const Profile &profile_;
  ContainerWriter out_;
  std::map<ModuleId, uint32_t> module_numbers_;
  std::set<uint32_t> written_;
  uint32_t repeated_ = 0;
  std::map<std::tuple<StackId, uint32_t, Origin>, uint32_t> contexts_;
  std::map<Origin, uint32_t> origins_;
};

} // namespace

std::vector<std::byte> write_bytes(const Profile &profile) {
  FileWriter writer(profile);
  return writer.write().bytes();
}

void write(const Profile &profile, const std::string &path) {
  FileWriter writer(profile);
  writer.write().save(path);
}

} // namespace profile
