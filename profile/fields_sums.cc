#include "profile/fields_sums.h"

#include <algorithm>

namespace profile {

RecordId FieldsSums::record(Profile &profile, const Record &record) {
  auto [known, is_new] = records_.try_emplace(record.hash, profile.fields.records.size());
  if (is_new)
    profile.fields.records.push_back(record);
  return {static_cast<uint32_t>(known->second)};
}

void FieldsSums::add(Profile &profile, const FieldUse &use) {
  FieldUse *sum =
      known_sum(uses_, {use.record, use.first, use.more, use.module, use.function, use.line},
                profile.fields.uses, use);
  if (!sum)
    return;
  sum->reads += use.reads;
  sum->writes += use.writes;
  sum->copied += use.copied;
}

void FieldsSums::add(Profile &profile, const FieldSet &set) {
  FieldSet *sum = known_sum(sets_, {set.record, set.kind, set.leaves}, profile.fields.sets, set);
  if (!sum)
    return;
  sum->count += set.count;
  sum->adjacent += set.adjacent;
}

void FieldsSums::add(Profile &profile, const FieldSharing &sharing) {
  FieldSharing *sum =
      known_sum(sharing_, {sharing.record, sharing.leaf, sharing.other_record, sharing.other_leaf},
                profile.fields.sharing, sharing);
  if (!sum)
    return;
  sum->count += sharing.count;
  sum->same_object += sharing.same_object;
}

void FieldsSums::add(Profile &profile, const FieldSampling &sampling) {
  FieldSampling *sum = known_sum(sampling_, sampling.record, profile.fields.sampling, sampling);
  if (!sum)
    return;
  sum->rounds += sampling.rounds;
  sum->visits += sampling.visits;
  sum->stretches += sampling.stretches;
}

void FieldsSums::add(Profile &into, const Profile &other, const NewIds &ids) {
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

void FieldsSums::finish(Profile &profile, const NewIds &ids) {
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

} // namespace profile
