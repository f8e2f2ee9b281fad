#include "analyze/thread_work.h"

#include "analyze/workingset.h"

#include <algorithm>
#include <map>

namespace analyze {
namespace {

struct Seen {
  std::vector<size_t> snapshots; // ascending
  std::map<std::string, size_t> functions;
};

} // namespace

std::vector<ThreadRow> find_thread_work(std::vector<SnapshotRow> &snapshots) {
  std::map<uint32_t, Seen> threads;
  for (size_t i = 0; i < snapshots.size(); i++)
    for (const ThreadStack &stack : snapshots[i].stacks) {
      Seen &seen = threads[stack.thread];
      if (seen.snapshots.empty() || seen.snapshots.back() != i)
        seen.snapshots.push_back(i);
      seen.functions[stack.frames[stack.owner].function]++;
    }
  std::vector<ThreadRow> rows;
  for (const auto &[thread, seen] : threads) {
    ThreadRow row{thread, seen.snapshots.front(), seen.snapshots.back(), 0, {}};
    uint64_t all = 0, worked = 0;
    auto next = seen.snapshots.begin();
    for (size_t i = row.first; i <= row.last; i++) {
      all += snapshots[i].when.length();
      if (i == *next) {
        worked += snapshots[i].when.length();
        ++next;
      } else {
        snapshots[i].idle_threads.push_back(thread);
      }
    }
    row.work_share = all ? double(worked) / double(all) : 1;
    row.function =
        std::max_element(seen.functions.begin(), seen.functions.end(),
                         [](const auto &a, const auto &b) { return a.second < b.second; })
            ->first;
    rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace analyze
