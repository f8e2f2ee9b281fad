// Where the instructions of a routine lie when it has been moved, and its unwind entries, which
// follow from that.
//
// Moved code is a run of all instructions in the order of their addresses, and behind it what stands
// beside them: slow paths, and what is done on the way of a jump. Each piece of that unwinds as one
// of the instructions does.
#pragma once

#include "trace/unwind.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace trace {

// Addresses of the original are linked ones, in a routine; what lies at `at` are offsets in the
// module's moved code.
class MovedPlaces {
public:
  // The instruction, with the snippets before it, begins at `at`. In the order of addresses.
  void add(uint64_t address, uint32_t at) { instructions_.emplace_back(address, at); }
  // The last instruction ends.
  void end(uint32_t at) { end_ = at; }
  // That of the instruction which was added last.
  uint64_t last_address() const { return instructions_.back().first; }

  // From `at` on lies what unwinds as the instruction at the address. In the order of `at`.
  void add_side(uint64_t address, uint32_t at) { sides_.emplace_back(address, at); }
  void end_sides(uint32_t at) { sides_end_ = at; }

  // Adds the entry again, for the part of it that is [begin, end) of the original.
  void cover(UnwindTables &unwind, const image::UnwindRange &frame, uint64_t begin, uint64_t end,
             const MovedBlock &moved_block) const;

private:
  // Addresses of the original in ascending order, each with where its code lies.
  using Place = std::pair<uint64_t, uint32_t>;
  using Places = std::span<const Place>;

  std::vector<Place> instructions_;
  uint32_t end_ = 0;
  std::vector<Place> sides_; // by where they lie
  uint32_t sides_end_ = 0;
};

} // namespace trace
