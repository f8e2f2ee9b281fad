// What was measured of the heap: of each context, of one process over time, and of memory outside the heap.
#pragma once

#include "abi/records.h"
#include "profile/ids.h"

#include <vector>

namespace profile {

struct TimelinePoint {
  uint64_t time_us = 0, live_objects = 0, live_bytes = 0, peak_bytes = 0;
  friend auto operator<=>(const TimelinePoint &, const TimelinePoint &) = default;
};

// The last complete walk over the live objects.
struct Walk {
  uint64_t number = 0, time_us = 0, objects = 0, bytes = 0;
  friend auto operator<=>(const Walk &, const Walk &) = default;
};

struct HeapFreedAt {
  StackId stack; // of the free
  uint64_t count = 0, bytes = 0;
  friend auto operator<=>(const HeapFreedAt &, const HeapFreedAt &) = default;
};

// How deep a recursion on a call stack was, over the allocations that saw it. Call stacks are folded: each function
// stands there once.
struct Recursion {
  uint64_t count = 0;        // allocations
  uint64_t levels = 0;       // sum over them: how often the function was on the stack
  uint32_t min = 0, max = 0; // levels
  uint32_t frame = 0;        // of the stack's frames, the one whose function recurs
  void add(const Recursion &other);
  friend auto operator<=>(const Recursion &, const Recursion &) = default;
};

// All objects of one type and origin that were allocated through one call stack. A block with
// alloc_count 0 is empty (abi/hib.def).
struct HeapContext {
  HeapContext();
  StackId stack;
  TypeId type; // none if unknown
  Origin origin;
  AssayHib freed, live;
  AssayHibHistograms freed_histograms, live_histograms;
  uint64_t peak_bytes = 0;    // most bytes alive at one time, of any one process
  uint64_t at_peak_bytes = 0; // alive when the process with the largest peak had it
  Recursion recursion;        // count is 0 where there was none
  std::vector<HeapFreedAt> freed_at;
  friend bool operator==(const HeapContext &, const HeapContext &);
};

// 64 bytes of memory that is not the heap's, and its accesses.
struct NonHeapBlock {
  uint32_t kind = 0;   // AssayNonHeapKind
  ModuleId module;     // of globals; none if it is not known
  uint32_t thread = 0; // of a stack: its number in its process, 1 is the main one
  uint64_t offset = 0; // globals: address in the ELF image; stack: bytes below the top
  uint64_t reads = 0, writes = 0;
  friend auto operator<=>(const NonHeapBlock &, const NonHeapBlock &) = default;
};

} // namespace profile
