// The values of one sample at one place are one window: they depend on each other, as the
// iterations of a loop do. So a sample's values are sorted by place first, and each hotlist gets
// its window as a whole. Strides are differences within a window, so none spans two samples.
//
// Addresses of code differ from run to run. So targets and callers become places in files before
// they are counted. What was looked up is remembered, because a look-up goes through the process's
// mappings.

#include "values/value_sums.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace values {
namespace {

// Of weights: those of samples at instructions that take as long as the mean; the largest; and
// after how many interrupts an instruction's own ratio counts as much as the mean.
constexpr double kUnit = 8, kMaxWeight = 512, kPrior = 8;
constexpr size_t kCodeAddresses = 1 << 16; // whose places are remembered, for so long:
constexpr std::chrono::seconds kRemembered{1};

uint64_t list_key(uint32_t where, unsigned kind, unsigned detail) {
  return uint64_t{where} << 16 | kind << 8 | detail;
}

// What counts of a value: of one that is narrower than its register, its bytes.
uint64_t cut(const assay_sampled_value &value) {
  if (assay_value_is(value.kind) == ASSAY_VALUE_IS_truth)
    return value.value != 0;
  const unsigned bytes = assay_value_bytes(value.kind, value.detail);
  return bytes == 8 ? value.value : value.value & ((uint64_t{1} << 8 * bytes) - 1);
}

} // namespace

uint64_t code_value(const CodeFile &file, uint64_t offset) {
  return uint64_t{profile::code_value_file(file.build_id, file.path)} << 48 |
         (offset & 0xffff'ffff'ffff);
}

// Remembered for a while, as to look one up goes through the process's mappings, which may change.
ValueSums::CodeAddress &ValueSums::code_address(uint32_t pid, uint64_t address) {
  if (code_addresses_.size() > kCodeAddresses)
    code_addresses_.clear();
  auto [known, is_new] = code_addresses_.try_emplace(ProcessAddress{pid, address});
  if (is_new || now_ - known->second.when > kRemembered) {
    const auto place = code_.place_in(pid, address);
    known->second.when = place ? now_ : Clock::time_point{}; // it may be mapped in a moment
    known->second.where = 0;
    known->second.value = place ? code_value(code_.files()[place->file], place->offset) : address;
  }
  return known->second;
}

// Code lies at another address in each run: a place in a file is what can be added up.
uint64_t ValueSums::translated(const assay_sample &sample, const assay_sampled_value &value) {
  return assay_value_is(value.kind) == ASSAY_VALUE_IS_code
             ? code_address(sample.pid, value.value).value
             : cut(value);
}

uint32_t ValueSums::where_of_target(uint32_t pid, uint64_t target) {
  CodeAddress &known = code_address(pid, target);
  if (!known.where)
    known.where = code_.where_at(pid, target);
  return known.where;
}

ValueSums::List *ValueSums::list_at(uint32_t where, unsigned kind, unsigned detail) {
  const uint64_t key = list_key(where, kind, detail);
  if (auto known = index_.find(key); known != index_.end())
    return &lists_[known->second];
  if (lists_.size() >= settings_.most_places)
    return nullptr;
  index_.emplace(key, static_cast<uint32_t>(lists_.size()));
  lists_.push_back({where, static_cast<uint8_t>(kind), static_cast<uint8_t>(detail),
                    new_hotlist(settings_.seed ^ key), nullptr});
  return &lists_.back();
}

profile::Hotlist ValueSums::new_hotlist(uint64_t seed) const {
  return {settings_.hotlist, settings_.capacity, seed};
}

void ValueSums::add_window(std::span<const assay_sampled_value> values, const assay_sample &sample,
                           uint64_t weight) {
  const assay_sampled_value &first = values.front();
  List *list = list_at(first.where, first.kind, first.detail);
  if (!list) {
    lost_values_ += values.size();
    return;
  }
  // Each value once, with its number.
  std::vector<uint64_t> &numbers = numbers_;
  auto add = [&](profile::Hotlist &hotlist) {
    std::sort(numbers.begin(), numbers.end());
    hotlist.begin_window(weight * numbers.size());
    for (size_t i = 0; i < numbers.size();) {
      size_t next = i + 1;
      while (next < numbers.size() && numbers[next] == numbers[i])
        next++;
      hotlist.add(numbers[i], weight * (next - i), weight * numbers.size());
      i = next;
    }
  };
  numbers.clear();
  for (const assay_sampled_value &value : values)
    numbers.push_back(translated(sample, value));
  add(list->values);
  if (assay_value_is(first.kind) != ASSAY_VALUE_IS_address || values.size() == 1)
    return;
  numbers.clear();
  for (size_t i = 1; i < values.size(); i++)
    numbers.push_back(values[i].value - values[i - 1].value);
  if (!list->strides)
    list->strides = std::make_unique<profile::Hotlist>(
        new_hotlist(~settings_.seed ^ list_key(first.where, first.kind, first.detail)));
  add(*list->strides);
}

// An interrupt comes to an instruction the more often the longer it takes; so what follows slow
// code is seen too often. If each sample counts by how often its first instruction is executed,
// over how often interrupts came to it, all executions count the same (Horvitz and Thompson, "A
// generalization of sampling without replacement from a finite universe", 1952). How often
// instructions are executed is what the samples say, so weighed; from samples that begin at
// executions by chance the same frequencies follow, which is why that settles.
uint64_t ValueSums::weight_of(const assay_sample &sample) const {
  if (!settings_.even || interrupts_ == 0 || executions_ == 0)
    return 1;
  const auto known = counts_.find(sample.start);
  if (known == counts_.end())
    return 1;
  const double mean = double(executions_) / double(interrupts_);
  const double ratio = (double(known->second.executions) + kPrior * mean) /
                       (double(known->second.interrupts) + kPrior) / mean;
  return static_cast<uint64_t>(std::lround(std::clamp(kUnit * ratio, 1., kMaxWeight)));
}

void ValueSums::add(const assay_sample &sample, std::span<const assay_sampled_value> values) {
  samples_++;
  now_ = Clock::now();
  const auto place = sample.start ? code_.place(sample.start) : std::nullopt;
  const size_t file = place ? place->file + 1 : 0;
  if (file >= ends_.size())
    ends_.resize(file + 1);
  if (sample.end < ends_[file].size())
    ends_[file][sample.end]++;
  if (sample.start)
    counts_[sample.start].interrupts++, interrupts_++;
  const uint64_t weight = weight_of(sample);
  values_count_ += values.size();
  if (settings_.conflicts)
    window_conflicts_.find(sample, values, [&](uint32_t store, uint32_t load, uint32_t kind) {
      conflicts_[{store, load, kind}]++;
    });
  count_executions(sample, values, weight);
  sorted_.assign(values.begin(), values.end());
  std::sort(sorted_.begin(), sorted_.end(),
            [](const assay_sampled_value &a, const assay_sampled_value &b) {
              return std::tie(a.where, a.kind, a.detail, a.step) <
                     std::tie(b.where, b.kind, b.detail, b.step);
            });
  for (size_t i = 0; i < sorted_.size();) {
    size_t next = i + 1;
    while (next < sorted_.size() && sorted_[next].where == sorted_[i].where &&
           sorted_[next].kind == sorted_[i].kind && sorted_[next].detail == sorted_[i].detail)
      next++;
    add_window(std::span(sorted_).subspan(i, next - i), sample, weight);
    i = next;
  }
}

// Of instructions that have no value, a sample does not say that they were executed: but those that lie behind
// another one on its way were.
void ValueSums::count_executions(const assay_sample &sample,
                                 std::span<const assay_sampled_value> values, uint64_t weight) {
  uint32_t expected = sample.skipped == 0 ? sample.start : 0;
  size_t next = 0;
  for (unsigned step = 0; step < sample.instructions; step++) {
    bool is_known = expected != 0, is_taken = false;
    uint64_t target = 0; // of an indirect call or jump: an address of the process
    uint32_t where = expected;
    for (; next < values.size() && values[next].step == step; next++) {
      where = values[next].where;
      is_known = true;
      if (values[next].kind == ASSAY_VALUE_target)
        target = values[next].value;
      is_taken |= values[next].kind == ASSAY_VALUE_branch && values[next].value != 0;
    }
    if (!is_known)
      continue;
    counts_[where].executions += weight;
    executions_ += weight;
    const CodeCache::Shape shape = code_.shape(where);
    if (target)
      expected = where_of_target(sample.pid, target);
    else if (is_taken || shape.jumps)
      expected = targets_.of(where);
    else
      expected = shape.length ? code_.behind(where, shape.length) : 0;
  }
}

std::vector<ValueSums::Ends> ValueSums::ends_of_files() const {
  return {ends_.begin() + 1, ends_.end()};
}

void ValueSums::clear() {
  samples_ = values_count_ = lost_values_ = interrupts_ = executions_ = 0;
  ends_.assign(1, {});
  index_ = {};
  lists_ = std::vector<List>();
  counts_ = {};
  conflicts_ = {};
  code_addresses_.clear(); // numbers of processes are given again
}

void ValueSums::move_to(profile::Profile &profile) {
  auto module_of = [](const CodeCache::Place &place) { return profile::ModuleId{place.file}; };
  index_ = {}; // memory is given back piece by piece: this is when most is needed
  profile.values.samples += samples_;
  for (const Ends &ends : ends_)
    for (size_t i = 0; i < ends.size(); i++)
      profile.values.ends[i] += ends[i];
  profile.values.instructions.reserve(profile.values.instructions.size() + counts_.size());
  for (const auto &[where, counts] : counts_) {
    const auto place = code_.place(where);
    auto bytes = code_.bytes(where);
    if (!place || bytes.empty())
      continue;
    profile.values.instructions.push_back(
        {module_of(*place), place->offset, std::move(bytes), counts.interrupts, counts.executions});
  }
  counts_ = {};
  profile.values.values.reserve(profile.values.values.size() + lists_.size());
  for (List &list : lists_)
    if (const auto place = code_.place(list.where))
      profile.values.values.push_back(
          {module_of(*place), place->offset, list.kind, list.detail, std::move(list.values),
           list.strides ? std::move(*list.strides) : profile::Hotlist{}});
  lists_ = std::vector<List>();
  for (const auto &[pair, count] : conflicts_) {
    const auto store = code_.place(pair.store), load = code_.place(pair.load);
    if (store && load)
      profile.values.conflicts.push_back(
          {module_of(*store), module_of(*load), store->offset, load->offset, pair.kind, count});
  }
}

} // namespace values
