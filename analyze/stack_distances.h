// The stack distance of each touch of a line: how many other lines were touched since its last touch.
//
// A fully associative cache of more lines than that, which replaces the line that was used longest
// ago, still holds the line (Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage
// hierarchies", 1970). Exact, in O(log n) for each touch of n lines: a tree over time counts the
// lines whose last touch lies behind another moment (Bennett, Kruskal, "LRU stack processing",
// 1975; the tree of sums: Fenwick, "A new data structure for cumulative frequency tables", 1994).
#pragma once

#include "analyze/recent_lines.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace analyze {

class StackDistances {
public:
  StackDistances();

  static constexpr uint64_t kFirst = UINT64_MAX; // the line was never touched before

  uint64_t touch(uint64_t line) {
    uint64_t dropped;
    const unsigned recent = top_.touch(line, dropped);
    return recent < RecentLines::kSize ? recent : rise(line, dropped);
  }
  // A touch of the line comes soon: what is known of it is fetched into the cache.
  void expect(uint64_t line) const;
  // From now on it is as if the line had never been touched. What touch() would have said.
  uint64_t forget(uint64_t line);
  size_t lines() const { return top_.size() + below_; }

private:
  static constexpr uint64_t kNoLine = RecentLines::kNoLine;
  static constexpr uint32_t kAtTop = UINT32_MAX, kForgotten = UINT32_MAX - 1;
  struct Entry { // of the hash table
    uint64_t line = kNoLine;
    uint32_t time = kForgotten;
  };
  uint64_t rise(uint64_t line, uint64_t dropped);
  uint64_t distance_below(uint32_t time) const;
  void sink(uint64_t line);
  uint32_t find(uint64_t line) const;
  uint32_t find_or_add(uint64_t line);
  void rebuild_table();
  void renumber_times();
  void set_time(uint32_t time, bool is_taken);

  RecentLines top_;
  // The other lines, by the time at which they left the top: in the order of their last touches.
  std::vector<Entry> table_; // at most half full; its size is a power of two
  size_t used_ = 0;
  std::vector<uint32_t> entry_at_; // by time
  std::vector<uint64_t> taken_;    // a bit for each time: a line has it
  std::vector<uint32_t> tree_;     // Fenwick's, over the words of taken_
  uint32_t now_ = 0;
  uint64_t below_ = 0; // bits in taken_
};

} // namespace analyze
