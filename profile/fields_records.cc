// The records of field accesses. A program's own file has counts of counters, and in its Sites what
// follows from these, and what each stretch of code accesses; both become sums for each field,
// function and line. A merged file has the sums.
//
// Counts may come before the Sites that explain them, so all is put together when the file has been read.

#include "abi/fields.h"
#include "abi/tools.h"
#include "base/byte_reader.h"
#include "profile/fields_sites.h"
#include "profile/fields_sums.h"
#include "profile/numbers.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace profile {
namespace {

using Bytes = std::span<const std::byte>;
using UnitKey = std::pair<uint32_t, uint32_t>; // module, offset of its entry in the Sites

void put_text(std::vector<std::byte> &to, const std::string &text) {
  auto raw = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  to.insert(to.end(), raw.begin(), raw.end());
}

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
        add(read_field_record(head.hash, head.size, head.line, head.leaves,
                              body.subspan(sizeof head)));
      } else if (site.kind == ASSAY_SITE_FIELDS) {
        units_[{module, offset}] = read_field_unit(body);
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
    add(read_field_record(r.hash, r.size, r.line, r.leaves, tail));
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
      next += read_small_number(reader);
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

  void add(const FieldUnit &unit, const Stretch &stretch, uint64_t count, ModuleId module) {
    std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>> together; // by record and base
    for (const StretchItem &item : stretch.items) {
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
  std::map<UnitKey, FieldUnit> units_;
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

constexpr uint32_t kLosses[] = {ASSAY_LOSS_field_units, ASSAY_LOSS_field_layouts,
                                ASSAY_LOSS_full_sets};

} // namespace

extern const ToolRecords fields_records;
const ToolRecords fields_records = {
    .losses = kLosses,
    .reader = []() -> std::unique_ptr<ToolReader> { return std::make_unique<Reader>(); },
    .sums = []() -> std::unique_ptr<ToolSums> { return std::make_unique<FieldsSums>(); },
    .write = write,
};

} // namespace profile
