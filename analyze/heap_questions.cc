// The questions of `assay heap`: a key, a sentence, and a ranking over the sums. What people are
// shown are the rows in this order.

#include "analyze/heap.h"
#include "base/sort_key.h"
#include "base/stable_sort.h"

namespace analyze {

std::span<const HeapQuestion> heap_questions() {
  static constexpr HeapQuestion kQuestions[] = {
      {"accesses", "Which allocations are hot?", NeededAccesses::kCounted,
       [](const HeapSums &s) { return double(s.accesses()); }},
      {"cold", "Which memory is held long and not touched?", NeededAccesses::kAll,
       [](const HeapSums &s) { return double(s.all.cold_byte_us_total); },
       [](const HeapSums &s, uint64_t run_us) {
         constexpr double kMinBytes = 64; // on average over the run
         return double(s.all.cold_byte_us_total) >= kMinBytes * double(run_us);
       }},
      {"waste", "Which objects are badly used?", NeededAccesses::kAll,
       [](const HeapSums &s) { return double(s.untouched_blocks()); }},
      {"reserve", "Which buffers are larger than what is used of them?", NeededAccesses::kAll,
       [](const HeapSums &s) { return s.over_reserved() ? double(s.untouched_bytes()) : 0; }},
      {"churn", "Where are objects made and thrown away?", NeededAccesses::kNone,
       [](const HeapSums &s) {
         return s.all.alloc_count > 1 ? double(s.all.alloc_count - s.live.alloc_count) /
                                            (1 + s.mean_lifetime_us() / 1e3)
                                      : 0;
       }},
      {"realloc", "What grows by realloc?", NeededAccesses::kNone,
       [](const HeapSums &s) {
         return double(s.all.realloc_moved_bytes) + double(s.all.realloc_count);
       },
       [](const HeapSums &s, uint64_t run_us) {
         constexpr uint64_t kMinBytes = 1 << 20, kMinCalls = 1000;
         return s.all.realloc_moved_bytes >= std::max(kMinBytes, run_us) || // a MB a second
                s.all.realloc_count >= std::max(kMinCalls, run_us / 1000);
       }},
      {"migrated", "What is freed on another cpu than it was allocated on?", NeededAccesses::kNone,
       [](const HeapSums &s) { return double(s.all.migrated_cpu); },
       [](const HeapSums &s, uint64_t run_us) {
         constexpr uint64_t kMin = 100; // as many as the scheduler moves
         return s.all.migrated_cpu >= std::max(kMin, run_us / 10'000) &&
                s.all.migrated_cpu >= s.all.alloc_count / 100;
       }},
      {"live", "What is still allocated at the end?", NeededAccesses::kNone,
       [](const HeapSums &s) { return double(s.leaked_bytes()); }},
      {"peak", "Who held the memory at the peak?", NeededAccesses::kNone,
       [](const HeapSums &s) { return double(s.at_peak_bytes); }},
      {"bytes", "Who asks for the most bytes?", NeededAccesses::kNone,
       [](const HeapSums &s) { return double(s.all.size_total); }},
      {"count", "Who allocates most often?", NeededAccesses::kNone,
       [](const HeapSums &s) { return double(s.all.alloc_count); }},
      {"lifetime", "Which objects live longest?", NeededAccesses::kNone,
       [](const HeapSums &s) { return s.mean_lifetime_us(); }},
  };
  return kQuestions;
}

const HeapQuestion &heap_question(const std::string &key) {
  return base::chosen_order(heap_questions(), key);
}

bool is_known(NeededAccesses needs, const HeapContextRow &row) {
  switch (needs) {
  case NeededAccesses::kNone: return true;
  case NeededAccesses::kCounted: return row.has_accesses();
  case NeededAccesses::kAll: return row.accesses_counted;
  }
  return true;
}

std::vector<size_t> ranked(const std::vector<HeapContextRow> &rows, const HeapQuestion &question) {
  std::vector<size_t> order;
  for (size_t index = 0; index < rows.size(); index++)
    if (question.rank(rows[index].sums) > 0 && is_known(question.needs, rows[index]))
      order.push_back(index);
  base::stable_sort(order, [&](size_t a, size_t b) {
    return question.rank(rows[a].sums) > question.rank(rows[b].sums);
  });
  return order;
}

} // namespace analyze
