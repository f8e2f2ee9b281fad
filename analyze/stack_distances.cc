// The top of the stack is a short list. A line gets a time only when it leaves that list: the order
// of these times is the order of last touches all the same.
//
// Times are counted up; when they are used up, the lines that have one get new ones from 0 on,
// without gaps. A bit for each time says whether a line has it, and the tree counts bits by words
// of 64: it is 64 times smaller than one over times, and lies in a cache.
//
// Refused: a balanced tree of lines by last touch (Olken, 1981), which follows pointers at each level.

#include "analyze/stack_distances.h"

#include <algorithm>
#include <bit>

namespace analyze {
namespace {

constexpr uint32_t kWord = 64;
constexpr size_t kFirstTimes = 1 << 16, kFirstTable = 1 << 12;

uint32_t place_of(uint64_t line, size_t size) {
  return static_cast<uint32_t>((line * 0x9e3779b97f4a7c15) >> 24) & static_cast<uint32_t>(size - 1);
}

} // namespace

StackDistances::StackDistances()
    : table_(kFirstTable), entry_at_(kFirstTimes), taken_(kFirstTimes / kWord),
      tree_(kFirstTimes / kWord + 1) {}

void StackDistances::expect(uint64_t line) const {
  __builtin_prefetch(&table_[place_of(line, table_.size())], 1);
}

// A line that was not at the top is there now; another one had to make room for it, or none.
uint64_t StackDistances::rise(uint64_t line, uint64_t dropped) {
  const uint32_t found = find_or_add(line);
  const uint32_t time = table_[found].time;
  uint64_t distance = kFirst;
  if (time != kForgotten) {
    // The line itself is at the top by now, and the one that made room is not below yet.
    distance = top_.size() - 1 + (dropped != kNoLine) + distance_below(time);
    set_time(time, false);
  }
  table_[found].time = kAtTop;
  if (dropped != kNoLine)
    sink(dropped);
  return distance;
}

// Lines below the top whose times are later.
uint64_t StackDistances::distance_below(uint32_t time) const {
  const uint32_t word = time / kWord;
  uint64_t until = static_cast<uint64_t>(
      std::popcount(taken_[word] & (~uint64_t{0} >> (kWord - 1 - time % kWord))));
  for (uint32_t at = word; at; at &= at - 1) // words before this one
    until += tree_[at];
  return below_ - until;
}

void StackDistances::sink(uint64_t line) {
  if (now_ == entry_at_.size())
    renumber_times();
  const uint32_t entry = find(line);
  table_[entry].time = now_;
  entry_at_[now_] = entry;
  set_time(now_, true);
  now_++;
}

void StackDistances::set_time(uint32_t time, bool is_taken) {
  taken_[time / kWord] ^= uint64_t{1} << (time % kWord);
  for (size_t at = time / kWord + 1; at < tree_.size(); at += at & (0 - at))
    tree_[at] += is_taken ? 1 : UINT32_MAX; // less one
  below_ += is_taken ? 1 : UINT64_MAX;
}

void StackDistances::renumber_times() {
  const size_t size = std::max(kFirstTimes, std::bit_ceil(static_cast<size_t>(below_) * 4));
  std::vector<uint32_t> entries(size);
  uint32_t next = 0;
  for (uint32_t word = 0; word < taken_.size(); word++)
    for (uint64_t bits = taken_[word]; bits; bits &= bits - 1) {
      const uint32_t time = word * kWord + static_cast<uint32_t>(std::countr_zero(bits));
      entries[next] = entry_at_[time];
      table_[entries[next]].time = next;
      next++;
    }
  entry_at_ = std::move(entries);
  now_ = next;
  taken_.assign(size / kWord, 0);
  tree_.assign(size / kWord + 1, 0);
  for (uint32_t word = 0; word * kWord < now_; word++)
    taken_[word] =
        now_ - word * kWord >= kWord ? ~uint64_t{0} : (uint64_t{1} << (now_ - word * kWord)) - 1;
  for (uint32_t at = 1; at < tree_.size(); at++) {
    tree_[at] += static_cast<uint32_t>(std::popcount(taken_[at - 1]));
    if (const uint32_t up = at + (at & (0 - at)); up < tree_.size())
      tree_[up] += tree_[at];
  }
}

uint32_t StackDistances::find(uint64_t line) const {
  uint32_t at = place_of(line, table_.size());
  while (table_[at].line != line && table_[at].line != kNoLine)
    at = (at + 1) & static_cast<uint32_t>(table_.size() - 1);
  return at;
}

uint32_t StackDistances::find_or_add(uint64_t line) {
  uint32_t at = find(line);
  if (table_[at].line == line)
    return at;
  if ((used_ + 1) * 2 > table_.size()) {
    rebuild_table();
    at = find(line);
  }
  table_[at].line = line;
  used_++;
  return at;
}

// Without what was forgotten, and large enough for as much again. Who names entries by their places
// is told the new ones.
void StackDistances::rebuild_table() {
  std::vector<Entry> old(std::max(kFirstTable, std::bit_ceil((lines() + 1) * 4)));
  old.swap(table_);
  used_ = 0;
  for (const Entry &entry : old) {
    if (entry.line == kNoLine || entry.time == kForgotten)
      continue;
    const uint32_t at = find(entry.line);
    table_[at] = entry;
    used_++;
    if (entry.time != kAtTop)
      entry_at_[entry.time] = at;
  }
}

uint64_t StackDistances::forget(uint64_t line) {
  const uint32_t found = find(line);
  if (table_[found].line != line || table_[found].time == kForgotten)
    return kFirst;
  uint64_t distance = 0;
  if (table_[found].time == kAtTop) {
    uint64_t none;
    distance = top_.touch(line, none);
    top_.remove(line);
  } else {
    distance = top_.size() + distance_below(table_[found].time);
    set_time(table_[found].time, false);
  }
  table_[found].time = kForgotten;
  return distance;
}

} // namespace analyze
