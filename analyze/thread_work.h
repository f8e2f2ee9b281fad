// Which threads worked when: those that touched lines that were new in a snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace analyze {

struct SnapshotRow;

struct ThreadRow {
  uint32_t thread = 0;
  size_t first = 0, last = 0; // indices of snapshots in which it touched something new
  double work_share = 0;      // of the time between: of the snapshots in which it did
  std::string function;       // that most of its stacks are in
};

// By thread. A thread between its first and last snapshot that touched nothing new is added to the
// idle_threads of the snapshot.
std::vector<ThreadRow> find_thread_work(std::vector<SnapshotRow> &snapshots);

} // namespace analyze
