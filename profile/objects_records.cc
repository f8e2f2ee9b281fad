// The records of objects: groups of what ended add up, of what is alive the last complete walk
// counts, and so it is with globals. In the model both are one: what an object has used so far is
// known of either.

#include "profile/objects_records.h"

#include "abi/tools.h"
#include "base/byte_reader.h"
#include "base/fail.h"
#include "profile/tool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

namespace profile {
namespace {

using Bytes = std::span<const std::byte>;

// kind, encoding, context, free context, class of sizes, units of a cell
using FileKey = std::tuple<uint32_t, uint32_t, ContextNumber, ContextNumber, uint64_t, uint32_t>;
using FileModule = std::pair<uint32_t, uint32_t>; // number, encoding

struct Words {
  std::map<FileKey, ObjectGroup> groups;
  std::map<FileModule, std::vector<AssayWordRun>> globals;

  void add(const Words &other) {
    for (auto &[key, group] : other.groups)
      groups[key].add(group);
    for (auto &[module, runs] : other.globals) {
      auto &into = globals[module];
      into.insert(into.end(), runs.begin(), runs.end());
      add_up(into, object_unit_bytes(module.second));
    }
  }
};

uint32_t encoding_of(uint32_t encoding) {
  if ((encoding & ASSAY_WORDS_ENCODING) != encoding || std::popcount(encoding) > 1)
    base::fail("encoding of words");
  return encoding;
}

class Reader : public ToolReader {
public:
  bool take(const RecordView &record, Process &process) override {
    process_ = &process;
    return dispatch(*this, record);
  }

  void on(const AssayObjectsMode &r, Bytes) {
    encoding_of(r.mode & ASSAY_WORDS_ENCODING);
    sampling().mode = r.mode;
    sampling().unit = r.unit;
    sampling().interval = sampling().last_interval = r.interval;
  }

  void on(const AssayObjectGroup &r, Bytes tail) {
    if (r.kind != ASSAY_OBJECT_HEAP && r.kind != ASSAY_OBJECT_STACK)
      base::fail("kind of objects");
    if (!std::has_single_bit(r.cell_units) || r.class_bytes > 1ULL << 48)
      base::fail("cells of objects");
    const uint32_t encoding = encoding_of(r.encoding);
    auto cells = items_of<AssayWordCell>(tail, "words of objects");
    const size_t positions =
        r.cell_units > 1 ? assay_line_positions(object_unit_bytes(encoding)) : 0;
    if (cells.size() > ASSAY_OBJECT_CELLS + ASSAY_LINE_BYTES + 1)
      base::fail("too many words of objects");
    ObjectGroup group;
    const size_t split = std::min(positions, cells.size());
    group.positions.assign(cells.begin(), cells.begin() + static_cast<ptrdiff_t>(split));
    group.cells.assign(cells.begin() + static_cast<ptrdiff_t>(split), cells.end());
    group.sums = r.sums;
    ContextNumber free_context = r.free_context ? context_number(r.free_context) : 0;
    of_walk(r.walk)
        .groups[{r.kind, encoding, context_number(r.context), free_context, r.class_bytes,
                 r.cell_units}]
        .add(group);
  }

  void on(const AssayObjectGlobals &r, Bytes tail) {
    auto runs = items_of<AssayWordRun>(tail, "words of globals");
    for (const AssayWordRun &run : runs)
      if (run.units == 0 || run.hotness == 0 || run.units > 1ULL << 47 || run.offset > 1ULL << 48)
        base::fail("run of words");
    auto &into = of_walk(r.walk).globals[{r.module, encoding_of(r.encoding)}];
    into.insert(into.end(), runs.begin(), runs.end());
  }

  void on(const AssayObjectWalk &r, Bytes) {
    complete_walk_ = std::move(of_walk(r.walk));
    walk_ = Words();
    walk_number_ = 0;
    sampling().samples = r.samples;
    sampling().last_interval = r.interval;
    sampling().time_us = r.time_us;
  }

  void reset(Process &) override { ended_ = walk_ = complete_walk_ = Words(); }

  void end_process_records(Process &) override {
    sums_.add(ended_);
    sums_.add(complete_walk_);
    ended_ = walk_ = complete_walk_ = Words();
    walk_number_ = 0;
  }

  void resolve(FileNumbers &numbers, Assembler &output) override;

private:
  ObjectSampling &sampling() {
    if (!process_->object_sampling)
      process_->object_sampling.emplace();
    return *process_->object_sampling;
  }

  // A new number begins a new walk.
  Words &of_walk(uint64_t number) {
    if (number == 0)
      return ended_;
    if (number != walk_number_) {
      walk_ = Words();
      walk_number_ = number;
    }
    return walk_;
  }

  Process *process_ = nullptr;
  Words ended_, walk_, complete_walk_; // of this process
  uint64_t walk_number_ = 0;
  Words sums_; // of the file
};

class Sums : public ToolSums {
public:
  void add(Profile &profile, const ObjectGroup &group) {
    auto [known, is_new] = groups_.try_emplace(group.key(), profile.object_groups.size());
    if (is_new)
      profile.object_groups.push_back(group);
    else
      profile.object_groups[known->second].add(group);
  }

  void add(Profile &profile, const ObjectGlobals &globals) {
    auto [known, is_new] =
        globals_.try_emplace({globals.module, globals.encoding}, profile.object_globals.size());
    if (is_new) {
      profile.object_globals.push_back(globals);
      return;
    }
    auto &runs = profile.object_globals[known->second].runs;
    runs.insert(runs.end(), globals.runs.begin(), globals.runs.end());
  }

  void add(Profile &into, const Profile &other, const NewIds &ids) override {
    for (ObjectGroup each : other.object_groups) {
      translate(each, ids);
      add(into, each);
    }
    for (ObjectGlobals each : other.object_globals) {
      ids.translate(each.module);
      add(into, each);
    }
  }

  void finish(Profile &profile, const NewIds &ids) override {
    for (ObjectGroup &each : profile.object_groups)
      translate(each, ids);
    std::sort(profile.object_groups.begin(), profile.object_groups.end(),
              [](const ObjectGroup &a, const ObjectGroup &b) { return a.key() < b.key(); });
    for (ObjectGlobals &each : profile.object_globals) {
      ids.translate(each.module);
      add_up(each.runs, object_unit_bytes(each.encoding));
    }
    std::erase_if(profile.object_globals,
                  [](const ObjectGlobals &each) { return each.runs.empty(); });
    std::sort(profile.object_globals.begin(), profile.object_globals.end(),
              [](const ObjectGlobals &a, const ObjectGlobals &b) {
                return std::tie(a.module, a.encoding) < std::tie(b.module, b.encoding);
              });
  }

private:
  static void translate(ObjectGroup &group, const NewIds &ids) {
    ids.translate(group.stack);
    ids.translate(group.type);
    ids.translate(group.free_stack);
  }

  using Key = std::tuple<uint32_t, uint32_t, StackId, TypeId, Origin, StackId, uint64_t, uint32_t>;
  std::map<Key, size_t> groups_;
  std::map<std::pair<ModuleId, uint32_t>, size_t> globals_;
};

Sums &sums_of(Assembler &assembler) {
  return static_cast<Sums &>(assembler.sums(ASSAY_TOOL_objects));
}

void Reader::resolve(FileNumbers &numbers, Assembler &output) {
  Sums &sums = sums_of(output);
  for (auto &[key, group] : sums_.groups) {
    auto [kind, encoding, context, free_context, class_bytes, cell_units] = key;
    auto [stack, type, origin] = numbers.context(context);
    ObjectGroup resolved = group;
    resolved.kind = kind;
    resolved.encoding = encoding;
    resolved.stack = stack;
    resolved.type = type;
    resolved.origin = origin;
    if (free_context)
      resolved.free_stack = numbers.stack(free_context);
    resolved.class_bytes = class_bytes;
    resolved.cell_units = cell_units;
    sums.add(output.profile(), resolved);
  }
  for (auto &[module, runs] : sums_.globals)
    sums.add(output.profile(), ObjectGlobals{numbers.module(module.first), module.second, runs});
}

void write_group(const ObjectGroup &group, RecordSink &sink) {
  AssayObjectGroup record = {};
  record.kind = group.kind;
  record.context = sink.context(group.stack, group.type, group.origin);
  record.free_context = group.free_stack.known() ? sink.context(group.free_stack) : 0;
  record.encoding = group.encoding;
  record.cell_units = group.cell_units;
  record.class_bytes = group.class_bytes;
  record.sums = group.sums;
  std::vector<AssayWordCell> cells = group.positions;
  cells.insert(cells.end(), group.cells.begin(), group.cells.end());
  sink.out().record(ASSAY_RECORD_ObjectGroup, record, std::as_bytes(std::span(cells)));
}

// Everything that adds up is written as of objects that ended.
void write(const Profile &profile, const Process &process, bool is_carrier, RecordSink &sink) {
  if (const auto &sampling = process.object_sampling)
    sink.out().record(ASSAY_RECORD_ObjectsMode,
                      AssayObjectsMode{sampling->mode, sampling->unit, sampling->interval});
  if (is_carrier) {
    for (const ObjectGroup &group : profile.object_groups)
      write_group(group, sink);
    constexpr size_t kRuns = 1 << 16;
    for (const ObjectGlobals &globals : profile.object_globals) {
      std::span<const AssayWordRun> left(globals.runs);
      for (; !left.empty(); left = left.subspan(std::min(left.size(), kRuns)))
        sink.out().record(ASSAY_RECORD_ObjectGlobals,
                          AssayObjectGlobals{0, sink.module(globals.module), globals.encoding},
                          std::as_bytes(left.first(std::min(left.size(), kRuns))));
    }
  }
  if (const auto &sampling = process.object_sampling)
    sink.out().record(
        ASSAY_RECORD_ObjectWalk,
        AssayObjectWalk{1, sampling->time_us, sampling->samples, sampling->last_interval});
}

constexpr uint32_t kLosses[] = {ASSAY_LOSS_forked_use, ASSAY_LOSS_no_words, ASSAY_LOSS_hot_words,
                                ASSAY_LOSS_scattered_words};

} // namespace

extern const ToolRecords objects_records;
const ToolRecords objects_records = {
    .follows_objects = true,
    .losses = kLosses,
    .reader = []() -> std::unique_ptr<ToolReader> { return std::make_unique<Reader>(); },
    .sums = []() -> std::unique_ptr<ToolSums> { return std::make_unique<Sums>(); },
    .write = write,
};

void add(Assembler &assembler, const ObjectGroup &group) {
  sums_of(assembler).add(assembler.profile(), group);
}

void add(Assembler &assembler, const ObjectGlobals &globals) {
  sums_of(assembler).add(assembler.profile(), globals);
}

} // namespace profile
