// The records of field accesses. A program's own file has counts of counters, and in its Sites what
// follows from these, and what each stretch of code accesses; both become sums for each field,
// function and line. A merged file has the sums.
//
// Counts may come before the Sites that explain them, so all is put together when the file has been read.

#include "abi/fields.h"
#include "abi/tools.h"
#include "base/byte_reader.h"
#include "base/units.h"
#include "profile/merge.h"
#include "profile/numbers.h"
#include "profile/tool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <type_traits>

namespace profile {
namespace {

using Bytes = std::span<const std::byte>;
using UnitKey = std::pair<uint32_t, uint32_t>; // module, offset of its entry in the Sites

uint32_t read_small(base::ByteReader &reader) {
  uint64_t n = read_number(reader);
  if (n > UINT32_MAX)
    base::fail("number of a field");
  return static_cast<uint32_t>(n);
}

void put_text(std::vector<std::byte> &to, const std::string &text) {
  auto raw = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  to.insert(to.end(), raw.begin(), raw.end());
}

// What follows the fixed part: name, file, leaves.
Record read_record(uint64_t hash, uint64_t size, uint32_t line, uint32_t leaves, Bytes body) {
  base::ByteReader reader(body, "record");
  Record record;
  record.hash = hash;
  record.size = size;
  record.line = line;
  record.name = reader.zero_terminated();
  record.file = reader.zero_terminated();
  if (leaves > ASSAY_MAX_LEAVES + 1 || hash == 0)
    base::fail("a record of {}", base::with_noun(leaves, "leaf", "leaves"));
  for (uint32_t i = 0; i < leaves; i++) {
    Leaf leaf;
    leaf.offset_bits = read_number(reader);
    leaf.size_bits = read_number(reader);
    leaf.flags = read_small(reader);
    leaf.elements = read_number(reader);
    leaf.stride = read_number(reader);
    leaf.alignment = read_number(reader);
    leaf.name = reader.zero_terminated();
    leaf.type = reader.zero_terminated();
    if (leaf.offset_bits / 8 > (1ULL << 40) || leaf.size_bits / 8 > (1ULL << 40) ||
        !std::has_single_bit(leaf.alignment) || leaf.elements == 0 ||
        leaf.elements > (1ULL << 40) || leaf.stride > (1ULL << 40))
      base::fail("place of a field");
    record.leaves.push_back(std::move(leaf));
  }
  return record;
}

struct Item {
  uint32_t record; // ASSAY_RECORD_FIRST and on: index into the unit's hashes
  uint32_t first, more;
  uint64_t reads, writes, copied;
  uint32_t base;
};

// How often something is executed.
struct Quantity {
  uint64_t number;
  bool is_derived;
};

struct Term {
  Quantity quantity;
  bool is_negative;
};

struct Stretch {
  uint32_t function, line;
  Quantity executions;
  std::vector<Item> items;
};

struct Unit {
  std::vector<uint64_t> hashes;
  std::vector<std::string> functions;
  uint64_t counters = 0;
  std::vector<std::vector<Term>> derived; // of counters, and of those before
  std::vector<Stretch> stretches;
};

Quantity quantity_of(uint64_t raw, uint64_t counters, uint64_t derived) {
  Quantity quantity{raw / 2, raw % 2 != 0};
  if (quantity.number >= (quantity.is_derived ? derived : counters))
    base::fail("executions of a stretch");
  return quantity;
}

Unit read_unit(Bytes body) {
  base::ByteReader reader(body, "unit");
  auto head = reader.read<AssaySiteFields>();
  Unit unit;
  if (head.records > reader.left() / 8 || head.functions > reader.left() ||
      head.derived > reader.left() || head.stretches > reader.left() ||
      head.count > ASSAY_MAX_FIELD_COUNTERS)
    base::fail("a unit of {}", base::with_noun(head.count, "counter"));
  unit.counters = head.count;
  for (uint32_t i = 0; i < head.records; i++)
    unit.hashes.push_back(reader.read<uint64_t>());
  for (uint32_t i = 0; i < head.functions; i++)
    unit.functions.emplace_back(reader.zero_terminated());
  for (uint32_t i = 0; i < head.derived; i++) {
    std::vector<Term> terms;
    for (uint64_t n = read_number(reader); n > 0; n--) {
      const uint64_t raw = read_number(reader);
      terms.push_back({quantity_of(raw / 2, head.count, i), raw % 2 != 0});
    }
    unit.derived.push_back(std::move(terms));
  }
  for (uint32_t i = 0; i < head.stretches; i++) {
    Stretch stretch{read_small(reader), read_small(reader), {}, {}};
    stretch.executions = quantity_of(read_number(reader), head.count, head.derived);
    if (stretch.function >= unit.functions.size())
      base::fail("function of a stretch");
    for (uint64_t n = read_number(reader); n > 0; n--) {
      Item item = {};
      item.record = read_small(reader);
      item.first = read_small(reader);
      item.more = read_small(reader);
      item.reads = read_number(reader);
      item.writes = read_number(reader);
      item.copied = read_number(reader);
      item.base = read_small(reader);
      read_number(reader); // where the object begins
      if (item.record >= ASSAY_RECORD_FIRST &&
          item.record - ASSAY_RECORD_FIRST >= unit.hashes.size())
        base::fail("record of a stretch");
      stretch.items.push_back(item);
    }
    unit.stretches.push_back(std::move(stretch));
  }
  return unit;
}

// How often each stretch was executed. Threads that are in the middle of code while counters are
// written can make a difference that is below zero by some: that is none.
std::vector<uint64_t> executions_of(const Unit &unit, const std::vector<uint64_t> &counts) {
  std::vector<uint64_t> derived;
  auto value = [&](Quantity quantity) {
    return quantity.is_derived ? derived[quantity.number] : counts[quantity.number];
  };
  for (const std::vector<Term> &terms : unit.derived) {
    uint64_t sum = 0; // modulo 2^64, as some sums are negative
    for (const Term &term : terms)
      sum += term.is_negative ? -value(term.quantity) : value(term.quantity);
    derived.push_back(sum);
  }
  std::vector<uint64_t> executions;
  for (const Stretch &stretch : unit.stretches) {
    const auto n = static_cast<int64_t>(value(stretch.executions));
    executions.push_back(n > 0 ? static_cast<uint64_t>(n) : 0);
  }
  return executions;
}

class FieldsSums : public ToolSums {
public:
  RecordId record(Profile &profile, const Record &record) {
    auto [known, is_new] = records_.try_emplace(record.hash, profile.fields.records.size());
    if (is_new)
      profile.fields.records.push_back(record);
    return {static_cast<uint32_t>(known->second)};
  }

  void add(Profile &profile, const FieldUse &use) {
    FieldUse *sum =
        known_sum(uses_, {use.record, use.first, use.more, use.module, use.function, use.line},
                  profile.fields.uses, use);
    if (!sum)
      return;
    sum->reads += use.reads;
    sum->writes += use.writes;
    sum->copied += use.copied;
  }

  void add(Profile &profile, const FieldSet &set) {
    FieldSet *sum = known_sum(sets_, {set.record, set.kind, set.leaves}, profile.fields.sets, set);
    if (!sum)
      return;
    sum->count += set.count;
    sum->adjacent += set.adjacent;
  }

  void add(Profile &profile, const FieldSharing &sharing) {
    FieldSharing *sum = known_sum(
        sharing_, {sharing.record, sharing.leaf, sharing.other_record, sharing.other_leaf},
        profile.fields.sharing, sharing);
    if (!sum)
      return;
    sum->count += sharing.count;
    sum->same_object += sharing.same_object;
  }

  void add(Profile &profile, const FieldSampling &sampling) {
    FieldSampling *sum = known_sum(sampling_, sampling.record, profile.fields.sampling, sampling);
    if (!sum)
      return;
    sum->rounds += sampling.rounds;
    sum->visits += sampling.visits;
    sum->stretches += sampling.stretches;
  }

  void add(Profile &into, const Profile &other, const NewIds &ids) override {
    std::vector<RecordId> of;
    for (const Record &each : other.fields.records)
      of.push_back(record(into, each));
    for (FieldUse use : other.fields.uses) {
      if (use.record.known())
        use.record = of[use.record.v];
      ids.translate(use.module);
      add(into, use);
    }
    for (FieldSet set : other.fields.sets) {
      set.record = of[set.record.v];
      add(into, set);
    }
    for (FieldSharing sharing : other.fields.sharing) {
      sharing.record = of[sharing.record.v];
      sharing.other_record = of[sharing.other_record.v];
      add(into, sharing);
    }
    for (FieldSampling sampling : other.fields.sampling) {
      sampling.record = of[sampling.record.v];
      add(into, sampling);
    }
  }

  void finish(Profile &profile, const NewIds &ids) override {
    Fields &fields = profile.fields;
    std::vector<uint32_t> order(fields.records.size());
    for (uint32_t i = 0; i < order.size(); i++)
      order[i] = i;
    std::ranges::sort(order, {}, [&](uint32_t i) -> const Record & { return fields.records[i]; });
    std::vector<RecordId> renumbered(order.size());
    std::vector<Record> sorted;
    for (uint32_t i : order) {
      renumbered[i].v = static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(fields.records[i]));
    }
    fields.records = std::move(sorted);
    for (FieldUse &use : fields.uses) {
      if (use.record.known())
        use.record = renumbered[use.record.v];
      ids.translate(use.module);
    }
    for (FieldSet &set : fields.sets)
      set.record = renumbered[set.record.v];
    for (FieldSharing &sharing : fields.sharing) {
      sharing.record = renumbered[sharing.record.v];
      sharing.other_record = renumbered[sharing.other_record.v];
    }
    for (FieldSampling &sampling : fields.sampling)
      sampling.record = renumbered[sampling.record.v];
    std::ranges::sort(fields.sampling);
    std::ranges::sort(fields.sharing);
    std::ranges::sort(fields.uses);
    std::ranges::sort(fields.sets);
  }

private:
  // The sum of this key, to which what is new is to be added; null where there was none: then the new one is it.
  template <typename Key, typename T>
  static T *known_sum(std::map<Key, size_t> &index, const std::type_identity_t<Key> &key,
                      std::vector<T> &all, const T &new_one) {
    auto [known, is_new] = index.try_emplace(key, all.size());
    if (!is_new)
      return &all[known->second];
    all.push_back(new_one);
    return nullptr;
  }

  std::map<uint64_t, size_t> records_; // by hash
  std::map<std::tuple<RecordId, uint32_t, uint32_t, ModuleId, std::string, uint32_t>, size_t> uses_;
  std::map<std::tuple<RecordId, uint32_t, std::vector<uint32_t>>, size_t> sets_;
  std::map<std::tuple<RecordId, uint32_t, RecordId, uint32_t>, size_t> sharing_;
  std::map<RecordId, size_t> sampling_;
};

FieldsSums &sums_of(Assembler &assembler) {
  return static_cast<FieldsSums &>(assembler.sums(ASSAY_TOOL_fields));
}

class Reader : public ToolReader {
public:
  bool take(const RecordView &record, Process &) override { return dispatch(*this, record); }

  void on_sites(uint32_t module, Bytes sites) override {
    base::ByteReader reader(sites, "sites");
    while (!reader.at_end()) {
      const auto offset = static_cast<uint32_t>(reader.offset());
      auto site = reader.read<AssaySite>();
      Bytes body = reader.bytes(site.size - sizeof site);
      if (site.kind == ASSAY_SITE_RECORD) {
        auto head = base::ByteReader(body, "record").read<AssaySiteRecord>();
        add(read_record(head.hash, head.size, head.line, head.leaves, body.subspan(sizeof head)));
      } else if (site.kind == ASSAY_SITE_FIELDS) {
        units_[{module, offset}] = read_unit(body);
      }
    }
  }

  void on(const AssayFieldCounts &r, Bytes tail) {
    auto &counts = of_process_.counts[{r.module, r.site}];
    base::ByteReader reader(tail, "counts");
    for (uint64_t next = 0; !reader.at_end(); next++) {
      next += read_number(reader);
      counts[next] += read_number(reader);
    }
  }

  void on(const AssayFieldRecord &r, Bytes tail) {
    add(read_record(r.hash, r.size, r.line, r.leaves, tail));
  }

  void on(const AssayFieldUse &r, Bytes tail) {
    FieldUse use;
    use.first = r.first;
    use.more = r.more;
    use.function = read_text(tail);
    use.line = r.line;
    use.reads = r.reads;
    use.writes = r.writes;
    use.copied = r.copied;
    of_process_.uses.push_back({r.record, r.module, use});
  }

  void on(const AssayFieldSet &r, Bytes tail) {
    FieldSet set;
    set.kind = r.kind;
    set.count = r.count;
    set.adjacent = r.adjacent;
    base::ByteReader reader(tail, "leaves");
    for (uint32_t next = 0; !reader.at_end(); next++) {
      next += read_small(reader);
      set.leaves.push_back(next);
    }
    of_process_.sets.push_back({r.record, set});
  }

  void on(const AssayFieldSharing &r, Bytes) { of_process_.sharing.push_back(r); }
  void on(const AssayFieldSampling &r, Bytes) { of_process_.sampling.push_back(r); }

  void reset(Process &) override { of_process_ = ProcessRecords(); }

  void end_process_records(Process &) override {
    for (auto &[unit, counts] : of_process_.counts)
      for (auto [counter, count] : counts)
        all_.counts[unit][counter] += count;
    std::ranges::move(of_process_.uses, std::back_inserter(all_.uses));
    std::ranges::move(of_process_.sets, std::back_inserter(all_.sets));
    std::ranges::move(of_process_.sharing, std::back_inserter(all_.sharing));
    std::ranges::move(of_process_.sampling, std::back_inserter(all_.sampling));
    of_process_ = ProcessRecords();
  }

  void resolve(FileNumbers &numbers, Assembler &output) override {
    output_ = &output;
    for (auto &[hash, record] : records_)
      ids_[hash] = sums_of(output).record(output.profile(), record);
    for (auto &[key, counts] : all_.counts) {
      auto unit = units_.find(key);
      std::vector<uint64_t> all(unit == units_.end() ? 0 : unit->second.counters);
      for (auto [counter, count] : counts)
        if (counter < all.size())
          all[counter] = count;
        else
          output.profile().losses[ASSAY_LOSS_bad_record]++;
      if (unit == units_.end())
        continue;
      const std::vector<uint64_t> executions = executions_of(unit->second, all);
      for (size_t i = 0; i < executions.size(); i++)
        if (executions[i])
          add(unit->second, unit->second.stretches[i], executions[i], numbers.module(key.first));
    }
    for (auto &[hash, module, use] : all_.uses)
      add(hash, numbers.module(module), use);
    for (auto &[hash, set] : all_.sets)
      add(hash, set);
    for (const AssayFieldSharing &sharing : all_.sharing)
      add(sharing);
    for (const AssayFieldSampling &sampling : all_.sampling)
      add(sampling);
  }

private:
  struct ProcessRecords {
    std::map<UnitKey, std::map<uint64_t, uint64_t>> counts;     // by counter
    std::vector<std::tuple<uint64_t, uint32_t, FieldUse>> uses; // hash, module
    std::vector<std::pair<uint64_t, FieldSet>> sets;            // hash
    std::vector<AssayFieldSharing> sharing;
    std::vector<AssayFieldSampling> sampling;
  };

  void add(Record record) {
    uint64_t hash = record.hash;
    records_.try_emplace(hash, std::move(record));
  }

  // The record of a hash; a loss if nobody has described it.
  RecordId record(uint64_t hash, uint64_t last_leaf) {
    auto known = ids_.find(hash);
    if (known != ids_.end() &&
        last_leaf < output_->profile().fields.records[known->second.v].leaves.size())
      return known->second;
    output_->profile().losses[ASSAY_LOSS_bad_record]++;
    return {};
  }

  void add(uint64_t hash, ModuleId module, FieldUse use) {
    if (hash) {
      use.record = record(hash, uint64_t{use.first} + use.more);
      if (!use.record.known())
        return;
    }
    use.module = module;
    sums_of(*output_).add(output_->profile(), use);
  }

  void add(uint64_t hash, FieldSet set) {
    if (set.leaves.empty())
      return;
    set.record = record(hash, set.leaves.back());
    if (set.record.known())
      sums_of(*output_).add(output_->profile(), set);
  }

  void add(const AssayFieldSharing &raw) {
    FieldSharing sharing;
    sharing.record = record(raw.record, raw.leaf);
    sharing.other_record = record(raw.other_record, raw.other_leaf);
    sharing.leaf = raw.leaf;
    sharing.other_leaf = raw.other_leaf;
    sharing.same_object = raw.same_object;
    sharing.count = raw.count;
    if (sharing.record.known() && sharing.other_record.known())
      sums_of(*output_).add(output_->profile(), sharing);
  }

  void add(const AssayFieldSampling &raw) {
    const FieldSampling sampling = {record(raw.record, 0), raw.rounds, raw.visits, raw.stretches};
    if (sampling.record.known())
      sums_of(*output_).add(output_->profile(), sampling);
  }

  void add(const Unit &unit, const Stretch &stretch, uint64_t count, ModuleId module) {
    std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>> together; // by record and base
    for (const Item &item : stretch.items) {
      uint64_t hash =
          item.record < ASSAY_RECORD_FIRST ? 0 : unit.hashes[item.record - ASSAY_RECORD_FIRST];
      FieldUse use;
      use.first = item.first;
      use.more = item.more;
      use.function = unit.functions[stretch.function];
      use.line = stretch.line;
      use.reads = item.reads * count;
      use.writes = item.writes * count;
      use.copied = item.copied * count;
      add(hash, module, use);
      if (hash)
        for (uint32_t i = 0; i <= item.more && i <= ASSAY_MAX_LEAVES; i++)
          together[{hash, item.base}].push_back(item.first + i);
    }
    for (auto &[key, leaves] : together) {
      std::ranges::sort(leaves);
      leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
      FieldSet set;
      set.kind = ASSAY_SET_STRETCH;
      set.leaves = leaves;
      set.count = count;
      add(key.first, set);
    }
  }

  Assembler *output_ = nullptr;
  std::map<uint64_t, Record> records_;
  std::map<uint64_t, RecordId> ids_;
  std::map<UnitKey, Unit> units_;
  ProcessRecords of_process_, all_;
};

void write_record(const Record &record, RecordSink &sink) {
  std::vector<std::byte> body;
  put_text(body, record.name);
  put_text(body, record.file);
  for (const Leaf &leaf : record.leaves) {
    for (uint64_t n : {leaf.offset_bits, leaf.size_bits, uint64_t{leaf.flags}, leaf.elements,
                       leaf.stride, leaf.alignment})
      put_number(body, n);
    put_text(body, leaf.name);
    put_text(body, leaf.type);
  }
  sink.out().record(ASSAY_RECORD_FieldRecord,
                    AssayFieldRecord{record.hash, record.size, record.line,
                                     static_cast<uint32_t>(record.leaves.size())},
                    body);
}

void write_set(const FieldSet &set, const Fields &fields, RecordSink &sink) {
  std::vector<std::byte> leaves;
  uint32_t next = 0;
  for (uint32_t leaf : set.leaves) {
    put_number(leaves, leaf - next);
    next = leaf + 1;
  }
  sink.out().record(
      ASSAY_RECORD_FieldSet,
      AssayFieldSet{fields.records[set.record.v].hash, set.kind, 0, set.count, set.adjacent},
      leaves);
}

void write(const Profile &profile, const Process &, bool is_carrier, RecordSink &sink) {
  if (!is_carrier)
    return;
  const Fields &fields = profile.fields;
  for (const Record &record : fields.records)
    write_record(record, sink);
  for (const FieldUse &use : fields.uses)
    sink.out().record(ASSAY_RECORD_FieldUse,
                      AssayFieldUse{use.record.known() ? fields.records[use.record.v].hash : 0,
                                    use.module.known() ? sink.module(use.module) : 0, use.line,
                                    use.first, use.more, use.reads, use.writes, use.copied},
                      std::as_bytes(std::span(use.function)));
  for (const FieldSet &set : fields.sets)
    write_set(set, fields, sink);
  for (const FieldSharing &sharing : fields.sharing)
    sink.out().record(ASSAY_RECORD_FieldSharing,
                      AssayFieldSharing{fields.records[sharing.record.v].hash,
                                        fields.records[sharing.other_record.v].hash, sharing.leaf,
                                        sharing.other_leaf, sharing.same_object, sharing.count});
  for (const FieldSampling &sampling : fields.sampling)
    sink.out().record(ASSAY_RECORD_FieldSampling,
                      AssayFieldSampling{fields.records[sampling.record.v].hash, sampling.rounds,
                                         sampling.visits, sampling.stretches});
}

} // namespace

extern const ToolRecords fields_records;
const ToolRecords fields_records = {
    .reader = []() -> std::unique_ptr<ToolReader> { return std::make_unique<Reader>(); },
    .sums = []() -> std::unique_ptr<ToolSums> { return std::make_unique<FieldsSums>(); },
    .write = write,
};

} // namespace profile
