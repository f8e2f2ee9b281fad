// What the time since each line's last touch tells: how large the working set is over longer periods,
// and how many lines a cache of a given size would have to bring in.
//
// The model: in a snapshot each of its lines is touched once, in an unknown order. Between two touches of
// a line, in snapshots l and s, a cache sees at least the distinct lines of the snapshots between them,
// and at most those of l to s. A fully associative cache with the least recently used line as its victim
// keeps the line if they fit (Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage
// hierarchies", 1970: stack distances), so there are two bounds. The mean set over windows of any length
// would do as well (Denning, Schwartz, "Properties of the working-set model", 1972; Xiang et al., "HOTL: a
// higher order theory of locality", 2013), but it mixes the phases of a run, and has no bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace analyze {

// Periods of so many snapshots, the first from the begin of the run on.
struct PeriodRow {
  size_t snapshots = 0;
  double mean_lines = 0;   // distinct lines, weighted by the lengths of the periods
  uint64_t most_lines = 0; // of any period
  double length = 0;       // of so many snapshots, on average, in the unit of time
};

// Lines brought into a cache over the run, the first touch of each among them.
struct Misses {
  uint64_t least = 0, most = 0;
};

class Reuse {
public:
  // Of a run with snapshots of these lengths.
  explicit Reuse(std::vector<uint64_t> lengths);

  // Lines that are touched in the running snapshot, and were last touched in `last`, or never before.
  static constexpr size_t kNever = SIZE_MAX;
  void touch(size_t last, uint64_t lines = 1);
  // Another snapshot runs then.
  void end_snapshot();

  // Periods of 1, 2, 4, … snapshots, and the whole run. The last one may have fewer. No mean is less than
  // the one before it.
  std::vector<PeriodRow> periods() const;
  // Of a cache of so many lines.
  Misses misses(uint64_t lines) const;

private:
  std::vector<uint64_t> lengths_; // of snapshots
  size_t snapshot_ = 0;
  uint64_t total_ = 0;              // lines ever touched
  std::vector<uint64_t> last_;      // lines whose last touch was in that snapshot
  std::vector<uint64_t> came_back_; // of the running one: lines last touched in that snapshot
  uint64_t new_ = 0;                // of the running one
  std::vector<std::vector<uint64_t>> fresh_; // level, period: distinct lines
  // Reused lines by how many lines a cache has to hold to keep them, with the bounds of the model.
  std::map<uint64_t, uint64_t> least_needed_, most_needed_;
};

} // namespace analyze
