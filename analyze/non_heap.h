// Which globals are used most, and how each thread's stack is used: of programs that were built to
// count them.
//
// Accesses are known by blocks of 64 bytes. The compiler gives each global that it instruments
// blocks of its own, so that a block is one global's; what it did not lay out (globals of libraries,
// constants) may share blocks, and is then shown under one name.
#pragma once

#include "image/symbols.h"
#include "profile/profile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace analyze {

struct GlobalRow {
  // Demangled; "a, b and 3 more" where they share a block; "constants of libc.so.6" or "data of …"
  // for blocks that no symbol names.
  std::string name;
  std::string module; // path; empty if unknown
  uint64_t size = 0;  // bytes of the named globals that lie in their blocks; 0 without a symbol
  uint64_t reads = 0, writes = 0;
  uint64_t touched_bytes = 0; // of `size`, in blocks with an access; without a symbol: those blocks
  std::string file;           // where it is declared; empty if unknown
  uint32_t line = 0;

  uint64_t accesses() const { return reads + writes; }
  double used_share() const { return size ? double(touched_bytes) / double(size) : 1; }
};

struct StackRow {
  uint32_t thread = 0; // its number in its process, 1 is the main one; processes are added
  uint64_t reads = 0, writes = 0;
  uint64_t deepest_bytes = 0; // from the top to the farthest block that was accessed
};

// block_bytes: what one counter covered. Most accesses first. Conserved: the sums of reads and
// writes are those of the profile's blocks.
std::vector<GlobalRow> globals(const profile::Profile &profile, image::Symbols &symbols,
                               uint64_t block_bytes);

// By number of the thread.
std::vector<StackRow> stacks(const profile::Profile &profile);

} // namespace analyze
