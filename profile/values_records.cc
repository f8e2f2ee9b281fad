// The records of sampled values. All of them add up; so a recording in several files, as a daemon
// writes it, is read as one.
//
// Records name modules by the file's numbers, so what is read waits for resolve(). Then what has
// the same key is added up: instructions by module, offset and bytes, so that other code at the
// same offset stays apart; lists by place, kind and detail. Profiles that are merged go through the
// same sums. What was added up belongs to no process any more, and is written with one of them, the
// carrier; how it was sampled is written with each. At the end all is sorted by its key.

#include "abi/records.h"
#include "abi/tools.h"
#include "base/fail.h"
#include "profile/merge.h"
#include "profile/tool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

namespace profile {
namespace {

using Bytes = std::span<const std::byte>;

InstructionBytes bytes_of(Bytes tail) {
  if (tail.empty() || tail.size() > InstructionBytes::kMax)
    base::fail("an instruction of {} bytes", tail.size());
  return InstructionBytes(tail);
}

Hotlist hotlist_of(const AssaySampledValues &r, Bytes tail) {
  std::vector<HotEntry> entries;
  for (const AssayHotEntry &entry : items_of<AssayHotEntry>(tail, "values of a hotlist"))
    entries.push_back({entry.value, entry.count, entry.error, entry.squares, entry.cross});
  return Hotlist(static_cast<HotlistKind>(std::min(r.algorithm, 255u)),
                 static_cast<unsigned>(std::min<uint64_t>(r.capacity, UINT32_MAX)), r.seed,
                 r.values, r.windows, r.squares, r.raises, std::move(entries));
}

class Reader : public ToolReader {
public:
  bool take(const RecordView &record, Process &process) override {
    process_ = &process;
    return dispatch(*this, record);
  }
  void on(const AssaySampling &r, Bytes) {
    process_->sampling = Sampling{r.collector,    r.scope, r.hertz,      r.instructions,
                                  r.most_skipped, r.kinds, r.duration_us};
  }
  void on(const AssaySampleEnds &r, Bytes tail) {
    const auto ends = items_of<uint64_t>(tail, "ends of samples");
    values_.samples += r.samples;
    for (size_t i = 0; i < std::min(ends.size(), values_.ends.size()); i++)
      values_.ends[i] += ends[i];
  }
  void on(const AssaySampledInstruction &r, Bytes tail) {
    instructions_.push_back({r.module, {{}, r.offset, bytes_of(tail), r.interrupts, r.executions}});
  }
  void on(const AssaySampledValues &r, Bytes tail) {
    if (r.kind >= ASSAY_VALUE_KINDS || r.detail > 255 || r.is_stride > 1)
      base::fail("kind of values");
    SampledValues values{{}, r.offset, static_cast<uint8_t>(r.kind), static_cast<uint8_t>(r.detail),
                         {}, {}};
    (r.is_stride ? values.strides : values.hotlist) = hotlist_of(r, tail);
    lists_.push_back({r.module, std::move(values)});
  }
  void on(const AssayMemoryConflict &r, Bytes) {
    conflicts_.push_back(
        {r.store_module,
         r.load_module,
         {{}, {}, r.store_offset, r.load_offset, static_cast<uint32_t>(r.kind), r.count}});
  }

  void resolve(FileNumbers &numbers, Assembler &output) override;

private:
  template <class T> struct OfModule {
    uint32_t module;
    T what;
  };
  struct OfModules {
    uint32_t store, load;
    MemoryConflict what;
  };
  Process *process_ = nullptr;
  Values values_; // what needs no module
  std::vector<OfModule<SampledInstruction>> instructions_;
  std::vector<OfModule<SampledValues>> lists_;
  std::vector<OfModules> conflicts_;
};

class Sums : public ToolSums {
public:
  void add(Profile &into, const SampledInstruction &each) {
    auto &all = into.values.instructions;
    auto [known, is_new] = instructions_.try_emplace({each.module, each.offset, each.bytes},
                                                     static_cast<uint32_t>(all.size()));
    if (is_new) {
      all.push_back(each);
      return;
    }
    all[known->second].interrupts += each.interrupts;
    all[known->second].executions += each.executions;
  }
  void add(Profile &into, SampledValues each) {
    auto &all = into.values.values;
    auto [known, is_new] = lists_.try_emplace({each.module, each.offset, each.kind, each.detail},
                                              static_cast<uint32_t>(all.size()));
    if (is_new) {
      all.push_back(std::move(each));
      return;
    }
    merge(all[known->second].hotlist, each.hotlist);
    merge(all[known->second].strides, each.strides);
  }
  void add(Profile &into, const MemoryConflict &each) {
    auto &all = into.values.conflicts;
    auto [known, is_new] = conflicts_.try_emplace(
        {each.store_module, each.load_module, each.store_offset, each.load_offset, each.kind},
        all.size());
    if (is_new)
      all.push_back(each);
    else
      all[known->second].count += each.count;
  }

  void add(Profile &into, const Profile &other, const NewIds &ids) override {
    into.values.samples += other.values.samples;
    for (size_t i = 0; i < other.values.ends.size(); i++)
      into.values.ends[i] += other.values.ends[i];
    for (SampledInstruction each : other.values.instructions) {
      ids.translate(each.module);
      add(into, each);
    }
    for (SampledValues each : other.values.values) {
      ids.translate(each.module);
      add(into, std::move(each));
    }
    for (MemoryConflict each : other.values.conflicts) {
      ids.translate(each.store_module);
      ids.translate(each.load_module);
      add(into, each);
    }
  }

  void finish(Profile &profile, const NewIds &ids) override {
    Values &values = profile.values;
    for (SampledInstruction &each : values.instructions)
      ids.translate(each.module);
    for (SampledValues &each : values.values)
      ids.translate(each.module);
    for (MemoryConflict &each : values.conflicts) {
      ids.translate(each.store_module);
      ids.translate(each.load_module);
    }
    std::sort(values.instructions.begin(), values.instructions.end());
    std::sort(values.values.begin(), values.values.end(),
              [](const SampledValues &a, const SampledValues &b) { return key_of(a) < key_of(b); });
    std::sort(values.conflicts.begin(), values.conflicts.end());
  }

private:
  static void merge(Hotlist &into, const Hotlist &other) {
    if (into.windows() == 0)
      into = other;
    else if (other.windows() != 0)
      into.merge(other);
  }
  using ListKey = std::tuple<ModuleId, uint64_t, uint8_t, uint8_t>;
  static ListKey key_of(const SampledValues &each) {
    return {each.module, each.offset, each.kind, each.detail};
  }
  std::map<std::tuple<ModuleId, uint64_t, InstructionBytes>, uint32_t> instructions_;
  std::map<ListKey, uint32_t> lists_;
  std::map<std::tuple<ModuleId, ModuleId, uint64_t, uint64_t, uint32_t>, size_t> conflicts_;
};

void Reader::resolve(FileNumbers &numbers, Assembler &output) {
  Sums &sums = static_cast<Sums &>(output.sums(ASSAY_TOOL_values));
  Profile &profile = output.profile();
  profile.values.samples += values_.samples;
  for (size_t i = 0; i < values_.ends.size(); i++)
    profile.values.ends[i] += values_.ends[i];
  for (auto &[module, each] : instructions_) {
    each.module = numbers.module(module);
    sums.add(profile, each);
  }
  for (auto &[module, each] : lists_) {
    each.module = numbers.module(module);
    sums.add(profile, std::move(each));
  }
  for (auto &[store, load, each] : conflicts_) {
    each.store_module = numbers.module(store);
    each.load_module = numbers.module(load);
    sums.add(profile, each);
  }
}

void write_list(const SampledValues &values, const Hotlist &list, bool is_stride,
                RecordSink &sink) {
  if (list.windows() == 0)
    return;
  AssaySampledValues record = {};
  record.module = sink.module(values.module);
  record.kind = values.kind;
  record.detail = values.detail;
  record.is_stride = is_stride;
  record.algorithm = static_cast<uint32_t>(list.kind());
  record.raises = list.raises();
  record.offset = values.offset;
  record.values = list.values();
  record.windows = list.windows();
  record.squares = list.squares();
  record.seed = list.seed();
  record.capacity = list.capacity();
  std::vector<AssayHotEntry> entries;
  for (const HotEntry &entry : list.entries())
    entries.push_back({entry.value, entry.count, entry.error, entry.squares, entry.cross});
  sink.out().record(ASSAY_RECORD_SampledValues, record, std::as_bytes(std::span(entries)));
}

void write(const Profile &profile, const Process &process, bool is_carrier, RecordSink &sink) {
  if (const auto &s = process.sampling)
    sink.out().record(ASSAY_RECORD_Sampling,
                      AssaySampling{s->collector, s->scope, s->hertz, s->instructions,
                                    s->most_skipped, s->kinds, s->duration_us});
  if (!is_carrier)
    return;
  const Values &values = profile.values;
  if (values.samples)
    sink.out().record(ASSAY_RECORD_SampleEnds, AssaySampleEnds{values.samples},
                      std::as_bytes(std::span(values.ends)));
  for (const SampledInstruction &each : values.instructions)
    sink.out().record(ASSAY_RECORD_SampledInstruction,
                      AssaySampledInstruction{sink.module(each.module), 0, each.offset,
                                              each.interrupts, each.executions},
                      each.bytes.span());
  for (const SampledValues &each : values.values) {
    write_list(each, each.hotlist, false, sink);
    write_list(each, each.strides, true, sink);
  }
  for (const MemoryConflict &each : values.conflicts)
    sink.out().record(ASSAY_RECORD_MemoryConflict,
                      AssayMemoryConflict{sink.module(each.store_module),
                                          sink.module(each.load_module), each.store_offset,
                                          each.load_offset, each.kind, each.count});
}

} // namespace

extern const ToolRecords values_records;
const ToolRecords values_records = {
    .reader = []() -> std::unique_ptr<ToolReader> { return std::make_unique<Reader>(); },
    .sums = []() -> std::unique_ptr<ToolSums> { return std::make_unique<Sums>(); },
    .can_carry_sums = [](const Process &process) { return process.sampling.has_value(); },
    .write = write,
};

} // namespace profile
