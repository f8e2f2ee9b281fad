// All three algorithms keep the same thing, values with counts; so they are one class whose kind
// says what happens to a value that is not there and to a list that is full. A class for each
// behind an interface was refused: there are hundreds of thousands of lists, most of them with one
// or two values, and a list is written as it is.
//
// The estimators are in docs/hotlists.md.

#include "profile/hotlist.h"

#include "base/fail.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace profile {
namespace {

constexpr double kCertainty = 1.959963984540054; // of 95 %, in standard deviations
constexpr double kRaise = 1.1;    // by what the threshold grows (Gibbons and Matias, section 3.1)
constexpr double kMinShare = .01; // of a value that is called hot

// By what the count of a counting sample is too low on average: threshold * (e - 2) / (e - 1) - 1, section 4.2.
double compensation(double threshold) {
  return std::max(0., threshold * (std::exp(1.) - 2) / (std::exp(1.) - 1) - 1);
}

} // namespace

HotlistKind hotlist_kind(std::string_view word) {
  for (HotlistKind kind : {HotlistKind::space_saving, HotlistKind::counting, HotlistKind::concise})
    if (hotlist_word(kind) == word)
      return kind;
  base::fail("{}: no such hotlist; there are space-saving, counting and concise", word);
}

void fail_of_kinds() {
  base::fail("its hotlists are of another kind than those before, which cannot be added; name "
             "profiles of one --hotlist only");
}

std::string_view hotlist_word(HotlistKind kind) {
  switch (kind) {
  case HotlistKind::space_saving: return "space-saving";
  case HotlistKind::counting: return "counting";
  case HotlistKind::concise: return "concise";
  }
  return "";
}

std::pair<double, double> wilson_interval(double share, double size) {
  if (size <= 0)
    return {0, 1};
  const double z2 = kCertainty * kCertainty;
  const double middle = (share + z2 / (2 * size)) / (1 + z2 / size);
  const double half =
      kCertainty / (1 + z2 / size) * std::sqrt(share * (1 - share) / size + z2 / (4 * size * size));
  return {std::max(0., middle - half), std::min(1., middle + half)};
}

Hotlist::Hotlist(HotlistKind kind, unsigned capacity, uint64_t seed, uint64_t values,
                 uint64_t windows, uint64_t squares, uint32_t raises, std::vector<HotEntry> entries)
    : kind_(kind), capacity_(capacity), values_(values), windows_(windows), squares_(squares),
      raises_(raises), random_(seed), entries_(std::move(entries)) {
  if (kind > HotlistKind::concise || capacity == 0 || capacity > 4096 ||
      entries_.size() > capacity || windows > values || raises > 400)
    base::fail("a hotlist that makes no sense");
  for (size_t i = 0; i < entries_.size(); i++) {
    const bool in_order = i == 0 || entries_[i - 1].value < entries_[i].value;
    if (!in_order || entries_[i].count == 0 || entries_[i].count > values)
      base::fail("a hotlist that makes no sense");
  }
}

void Hotlist::begin_window(uint64_t window_values) {
  values_ += window_values;
  windows_++;
  squares_ += window_values * window_values;
}

void Hotlist::add(uint64_t value, uint64_t times, uint64_t window_values) {
  HotEntry *entry = find(value);
  if (entry && kind_ != HotlistKind::concise) {
    entry->count += times;
    entry->squares += times * times;
    entry->cross += times * window_values;
    return;
  }
  if (kind_ != HotlistKind::space_saving)
    return add_points(value, times, window_values);
  if (entries_.size() >= capacity_)
    return replace_least(value, times, window_values);
  insert(value) = {value, times, 0, times * times, times * window_values};
}

void Hotlist::replace_least(uint64_t value, uint64_t times, uint64_t window_values) {
  auto least =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const HotEntry &a, const HotEntry &b) { return a.count < b.count; });
  const uint64_t before = least->count;
  entries_.erase(least);
  insert(value) = {value, before + times, before, times * times, times * window_values};
}

// Counting: until the value is in, a coin decides for each occurrence. Concise: a coin decides for each, always.
void Hotlist::add_points(uint64_t value, uint64_t times, uint64_t window_values) {
  uint64_t taken = 0;
  for (uint64_t i = 0; i < times; i++) {
    if (kind_ == HotlistKind::counting && taken > 0)
      taken++;
    else
      taken += flip(1 / threshold());
  }
  if (taken == 0)
    return;
  HotEntry *entry = find(value);
  if (!entry)
    entry = &(insert(value) = {value, 0, 0, 0, 0});
  entry->count += taken;
  entry->squares += taken * taken;
  entry->cross += taken * window_values;
  make_room();
}

// In words: a value that was drawn once takes one, another two (section 3). A counting sample keeps pairs.
uint64_t Hotlist::footprint() const {
  uint64_t words = 0;
  for (const HotEntry &entry : entries_)
    words += kind_ == HotlistKind::concise && entry.count == 1 ? 1 : 2;
  return words;
}

void Hotlist::make_room() {
  // Of a concise sample 2 * capacity values with one occurrence would fit in; the list has places for `capacity`.
  while (footprint() > 2 * uint64_t{capacity_} || entries_.size() > capacity_)
    raise_threshold(raises_ + 1);
}

double Hotlist::threshold() const {
  return std::pow(kRaise, raises_);
}

void Hotlist::raise_threshold(uint32_t raises) {
  const double to = std::pow(kRaise, raises), keep = threshold() / to;
  for (HotEntry &entry : entries_) {
    const uint64_t before = entry.count;
    if (kind_ == HotlistKind::concise) {
      // Each point of the sample stays with this probability (section 3.1).
      uint64_t kept = 0;
      for (uint64_t i = 0; i < before; i++)
        kept += flip(keep);
      entry.count = kept;
    } else {
      // The first coin decides whether the occurrence by which the value came in would have been
      // drawn; then, as for a value that is not in, each further one has its coin, until one is
      // drawn (section 4.1).
      for (uint64_t part = 0; part <= entry.error && entry.count > 0; part++) {
        if (flip(keep))
          continue;
        entry.count--;
        while (entry.count > 0 && !flip(1 / to))
          entry.count--;
      }
    }
    if (before != 0) {
      const double stays = double(entry.count) / double(before);
      entry.squares = uint64_t(std::llround(double(entry.squares) * stays * stays));
      entry.cross = uint64_t(std::llround(double(entry.cross) * stays));
    }
  }
  std::erase_if(entries_, [](const HotEntry &entry) { return entry.count == 0; });
  raises_ = raises;
}

void Hotlist::merge(const Hotlist &other) {
  if (other.kind_ != kind_)
    fail_of_kinds();
  Hotlist theirs = other;
  capacity_ = std::max(capacity_, theirs.capacity_);
  if (kind_ == HotlistKind::space_saving) {
    // A value that one list does not hold may have occurred as often as its least frequent one.
    auto least = [](const Hotlist &list) {
      uint64_t count = std::numeric_limits<uint64_t>::max();
      for (const HotEntry &entry : list.entries_)
        count = std::min(count, entry.count);
      return list.entries_.size() < list.capacity_ ? 0 : count;
    };
    const uint64_t ours_least = least(*this), theirs_least = least(theirs);
    for (HotEntry &entry : entries_)
      if (!theirs.find(entry.value)) {
        entry.count += theirs_least;
        entry.error += theirs_least;
      }
    for (const HotEntry &entry : theirs.entries_) {
      HotEntry *ours = find(entry.value);
      if (!ours)
        ours = &(insert(entry.value) = {entry.value, ours_least, ours_least, 0, 0});
      ours->count += entry.count;
      ours->error += entry.error;
      ours->squares += entry.squares;
      ours->cross += entry.cross;
    }
    if (entries_.size() > capacity_) {
      std::sort(entries_.begin(), entries_.end(), [](const HotEntry &a, const HotEntry &b) {
        return a.count != b.count ? a.count > b.count : a.value < b.value;
      });
      entries_.resize(capacity_);
      std::sort(entries_.begin(), entries_.end());
    }
  } else {
    random_ ^= theirs.random_;
    const uint32_t to = std::max(raises_, theirs.raises_);
    if (raises_ < to)
      raise_threshold(to);
    if (theirs.raises_ < to)
      theirs.raise_threshold(to);
    for (const HotEntry &entry : theirs.entries_) {
      HotEntry *ours = find(entry.value);
      if (!ours) {
        insert(entry.value) = entry;
        continue;
      }
      ours->count += entry.count;
      ours->squares += entry.squares;
      ours->cross += entry.cross;
      if (kind_ == HotlistKind::counting)
        ours->error += entry.error + 1;
    }
  }
  values_ += theirs.values_;
  windows_ += theirs.windows_;
  squares_ += theirs.squares_;
  if (kind_ != HotlistKind::space_saving)
    make_room();
}

HotValue Hotlist::share_of(const HotEntry &entry) const {
  if (values_ == 0)
    return {entry.value, 0, 0, 1};
  const auto values = double(values_), windows = double(windows_);
  double count = double(entry.count), surely = count, at_most = count, scale = 1;
  if (kind_ == HotlistKind::space_saving) {
    surely = double(entry.count - std::min(entry.error, entry.count));
    count = surely;
  } else if (kind_ == HotlistKind::counting) {
    count = at_most = surely = count + double(entry.error + 1) * compensation(threshold());
  } else {
    scale = threshold();
    count = at_most = surely = count * scale;
  }
  const double share = std::min(1., count / values);
  // The share is a ratio of sums over windows; its variance is that of the windows about it. It is
  // said as a number of independent values that would have the same (Cochran, "Sampling
  // Techniques", 1977, chapter 6).
  double size = windows;
  const double rest = double(entry.squares) * scale * scale -
                      2 * share * double(entry.cross) * scale + share * share * double(squares_);
  if (rest > 0 && share > 0 && share < 1 && windows > 1) {
    const double variance = rest / (values * values) * windows / (windows - 1);
    size = std::min(values, share * (1 - share) / variance);
  }
  if (kind_ == HotlistKind::concise)
    size = std::min(size, values / threshold());
  const double low = wilson_interval(std::min(1., surely / values), size).first;
  const double high = wilson_interval(std::min(1., at_most / values), size).second;
  return {entry.value, share, low, high};
}

std::vector<HotValue> Hotlist::hot() const {
  std::vector<HotValue> hot;
  for (const HotEntry &entry : entries_) {
    // A value that was seen in one window only may be hot or may be chance.
    const uint64_t surely = kind_ == HotlistKind::space_saving
                                ? entry.count - std::min(entry.error, entry.count)
                                : entry.count;
    const bool in_one_window = entry.squares >= surely * surely && windows_ > 1;
    HotValue value = share_of(entry);
    const double noise =
        kind_ == HotlistKind::counting ? std::max(2., threshold() - compensation(threshold())) : 2;
    if (in_one_window || surely < uint64_t(noise) || value.share < kMinShare)
      continue;
    hot.push_back(value);
  }
  std::sort(hot.begin(), hot.end(), [](const HotValue &a, const HotValue &b) {
    return a.share != b.share ? a.share > b.share : a.value < b.value;
  });
  return hot;
}

HotEntry *Hotlist::find(uint64_t value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), value,
                             [](const HotEntry &entry, uint64_t v) { return entry.value < v; });
  return at != entries_.end() && at->value == value ? &*at : nullptr;
}

HotEntry &Hotlist::insert(uint64_t value) {
  // Most lists stay short, and a full one has no room that it cannot use.
  if (const size_t size = entries_.size(); size == entries_.capacity() && size < capacity_)
    entries_.reserve(std::min(std::max<size_t>(2 * size, 1), size_t{capacity_}));
  auto at = std::lower_bound(entries_.begin(), entries_.end(), value,
                             [](const HotEntry &entry, uint64_t v) { return entry.value < v; });
  return *entries_.insert(at, HotEntry{value, 0, 0, 0, 0});
}

// splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
bool Hotlist::flip(double probability_of_heads) {
  if (probability_of_heads >= 1)
    return true;
  random_ += 0x9e3779b97f4a7c15;
  uint64_t z = random_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return double(z >> 11) * 0x1p-53 < probability_of_heads;
}

} // namespace profile
