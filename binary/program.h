// An executable as routines: which ranges of code belong together, where they are entered, which calls
// do not return.
//
// A routine is a function with the parts that the compiler moved away (`.cold`): ranges that jump
// into the middle of each other. It works without symbols.
#pragma once

#include "binary/callees.h"
#include "binary/decoder.h"
#include "image/executable.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace binary {

struct Routine {
  std::vector<image::CodeRange> ranges; // the first holds the first entry
  std::vector<uint64_t> entries;        // where it is called, jumped to from outside, or pointed at

  const std::string &name() const { return ranges.front().name; }
  uint64_t address() const { return entries.front(); }
  bool contains(uint64_t address) const;
  uint64_t bytes() const; // of code
};

// Of addresses, which are sorted, those within a range, but for its begin.
inline std::span<const uint64_t> behind_begin(const std::vector<uint64_t> &addresses,
                                              const image::CodeRange &range) {
  const auto first = std::upper_bound(addresses.begin(), addresses.end(), range.begin);
  return {first, std::lower_bound(first, addresses.end(), range.end)};
}

class Program {
public:
  // Scans all code once.
  explicit Program(image::Executable executable);
  ~Program();

  const image::Executable &executable() const { return executable_; }
  const std::vector<Routine> &routines() const { return routines_; } // by address
  // The routine whose ranges cover the address, or nullptr.
  const Routine *routine_at(uint64_t address) const;
  // By linkage name, demangled name or "0x…" of an address within; nullptr if there is none.
  const Routine *find(const std::string &what) const;

  // Whether a call of this address, or through this word of memory, never comes back.
  bool never_returns(uint64_t callee) const;
  bool never_returns_through(uint64_t slot) const;
  // Whether a call of this address may set the base of fs: only what sets up threads does.
  bool moves_fs(uint64_t callee) const;
  // The general registers that are what they were when a call of this address is back: the callee is
  // looked into, and those that it calls. Of a call through a pointer, or through this word of memory:
  // what the ABI says, less what functions of this file do otherwise. Not for several threads, but
  // behind look_into_calls().
  RegisterSet kept_by(uint64_t callee) const;
  RegisterSet kept_by_pointers(std::optional<uint64_t> slot) const;
  // Inspects all routines, on so many threads.
  void look_into_calls(unsigned threads) const;
  // Calls work(which, thread) for each of routines(), on so many threads; thread < threads. They
  // take little more memory at one time than the largest routine alone: what is large is thread
  // 0's, and has the others wait. Throws what `work` throws.
  void for_each_routine(unsigned threads,
                        const std::function<void(uint32_t which, unsigned thread)> &work) const;
  // Whether code at this address begins something that is entered by calls or pointers.
  bool is_entered(uint64_t address) const;
  // Addresses that instructions make, of code behind a function's begin; sorted.
  const std::vector<uint64_t> &taken_within() const { return taken_within_; }

private:
  struct Scan;
  void scan_range(size_t index, Scan &scan);
  void find_routines(const Scan &scan);
  class Groups;
  uint32_t range_at(uint64_t address) const;
  void join_parts(const Scan &scan, Groups &groups) const;
  std::vector<uint64_t> jumps_between(const Scan &scan, Groups &groups) const;
  void find_entries(const Scan &scan, const std::vector<uint64_t> &jumped_to,
                    Routine &routine) const;
  void find_never_returning(const Scan &scan);
  void find_moving_fs(const Scan &scan);

  image::Executable executable_;
  std::vector<Routine> routines_;
  std::vector<uint32_t> routine_of_range_;
  std::vector<uint64_t> entered_; // sorted
  std::vector<uint64_t> taken_within_;
  std::vector<bool> never_returns_; // by range
  std::vector<bool> moves_fs_;      // by range
  std::unique_ptr<Callees> callees_;
};

} // namespace binary
