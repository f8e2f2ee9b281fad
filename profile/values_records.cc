// The records of sampled values. All of them add up; so a recording in several files, as a daemon
// writes it, is read as one.
//
// Records name modules by the file's numbers, so what is read waits for resolve(). Then what has
// the same key is joined: instructions by module, offset and bytes, so that other code at the
// same offset stays apart; lists by place, kind and detail. Profiles that are merged go through the
// same sums. What was added up belongs to no process any more, and is written with one of them, the
// carrier; how it was sampled is written with each. At the end all is sorted by its key.

#include "abi/records.h"
#include "abi/tools.h"
#include "base/fail.h"
#include "base/stable_sort.h"
#include "profile/merge.h"
#include "profile/tool.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
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

// The canonical order, and what becomes of things that are the same.
bool comes_before(const SampledInstruction &a, const SampledInstruction &b) {
  return std::tie(a.module, a.offset, a.bytes) < std::tie(b.module, b.offset, b.bytes);
}
void join(SampledInstruction &into, const SampledInstruction &other) {
  into.interrupts += other.interrupts;
  into.executions += other.executions;
}

bool comes_before(const SampledValues &a, const SampledValues &b) {
  return std::tie(a.module, a.offset, a.kind, a.detail) <
         std::tie(b.module, b.offset, b.kind, b.detail);
}
void join(Hotlist &into, const Hotlist &other) {
  if (into.windows() == 0)
    into = other;
  else if (other.windows() != 0)
    into.merge(other);
}
void join(SampledValues &into, const SampledValues &other) {
  join(into.hotlist, other.hotlist);
  join(into.strides, other.strides);
}

bool comes_before(const MemoryConflict &a, const MemoryConflict &b) {
  auto key = [](const MemoryConflict &each) {
    return std::tie(each.store_module, each.load_module, each.store_offset, each.load_offset,
                    each.kind);
  };
  return key(a) < key(b);
}
void join(MemoryConflict &into, const MemoryConflict &other) {
  into.count += other.count;
}

// Items of which none comes before the other become one, in the order in which they were added. What
// was joined before stands sorted at the beginning; so only the rest is sorted.
template <class Item> void join_equal(std::vector<Item> &items) {
  auto is_before = [](const Item &a, const Item &b) { return comes_before(a, b); };
  const auto middle = std::is_sorted_until(items.begin(), items.end(), is_before);
  if (middle != items.end()) {
    std::vector<Item> rest(std::make_move_iterator(middle), std::make_move_iterator(items.end()));
    items.erase(middle, items.end());
    base::stable_sort(rest, is_before);
    std::vector<Item> all;
    all.reserve(items.size() + rest.size());
    std::merge(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()),
               std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()),
               std::back_inserter(all), is_before);
    items = std::move(all);
  }
  if (items.empty())
    return;
  size_t last = 0;
  for (size_t i = 1; i < items.size(); i++) {
    if (!comes_before(items[last], items[i]))
      join(items[last], items[i]);
    else if (++last != i)
      items[last] = std::move(items[i]);
  }
  items.erase(items.begin() + static_cast<ptrdiff_t>(last) + 1, items.end());
}

// Hundreds of thousands of items are sorted and joined now and then: a map of them takes three times as long.
class Sums : public ToolSums {
public:
  void add(Profile &into, const SampledInstruction &each) {
    add(into.values.instructions, each, most_instructions_);
  }
  void add(Profile &into, SampledValues each) {
    add(into.values.values, std::move(each), most_lists_);
  }
  void add(Profile &into, const MemoryConflict &each) {
    add(into.values.conflicts, each, most_conflicts_);
  }

  void add(Profile &into, const Profile &other, const NewIds &ids) override {
    Values copy = other.values;
    add(into, copy, ids);
  }
  void take(Profile &into, Profile &other, const NewIds &ids) override {
    add(into, other.values, ids);
  }

  void finish(Profile &profile, const NewIds &ids) override {
    Values &values = profile.values;
    translate(values, ids);
    join_equal(values.instructions);
    join_equal(values.values);
    join_equal(values.conflicts);
  }

private:
  static void translate(Values &values, const NewIds &ids) {
    for (SampledInstruction &each : values.instructions)
      ids.translate(each.module);
    for (SampledValues &each : values.values)
      ids.translate(each.module);
    for (MemoryConflict &each : values.conflicts) {
      ids.translate(each.store_module);
      ids.translate(each.load_module);
    }
  }

  // Before anything is moved: what does not add up fails as a whole.
  void check_kinds(const Values &other) {
    for (const SampledValues &each : other.values)
      for (const Hotlist *list : {&each.hotlist, &each.strides})
        if (list->windows() && kind_.value_or(list->kind()) != list->kind())
          fail_of_kinds();
        else if (list->windows())
          kind_ = list->kind();
  }

  // Moves what the other has.
  void add(Profile &into, Values &other, const NewIds &ids) {
    check_kinds(other);
    into.values.samples += other.samples;
    for (size_t i = 0; i < other.ends.size(); i++)
      into.values.ends[i] += other.ends[i];
    translate(other, ids);
    add(into.values.instructions, other.instructions, most_instructions_);
    add(into.values.values, other.values, most_lists_);
    add(into.values.conflicts, other.conflicts, most_conflicts_);
  }
  template <class Item>
  static void add(std::vector<Item> &items, std::vector<Item> &other, size_t &most) {
    if (items.empty()) {
      items = std::move(other);
    } else {
      items.reserve(items.size() + other.size());
      std::move(other.begin(), other.end(), std::back_inserter(items));
    }
    other = std::vector<Item>();
    join_if(items, most);
  }

  static constexpr size_t kFewest = 1024;
  template <class Item> static void add(std::vector<Item> &items, Item each, size_t &most) {
    items.push_back(std::move(each));
    join_if(items, most);
  }
  template <class Item> static void join_if(std::vector<Item> &items, size_t &most) {
    if (items.size() < most)
      return;
    join_equal(items);
    most = std::max(kFewest, 2 * items.size());
  }
  std::optional<HotlistKind> kind_; // of all lists
  // Items are joined when there are so many.
  size_t most_instructions_ = kFewest, most_lists_ = kFewest, most_conflicts_ = kFewest;
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
