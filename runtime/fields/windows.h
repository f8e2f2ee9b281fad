// Sampled windows: for some tens of stretches of code, which objects a thread accesses, and which
// of their fields. A window says what was used together, and by comparison of threads which lines
// they fight for. A thread samples some windows in a row.
#pragma once

#include <stdint.h>

#include "runtime/core/file/profile_file.h"
#include "runtime/fields/descriptors.h"

namespace assay::fields {

constexpr uint32_t kStretchesOfWindow = 32;
constexpr uint32_t kWindowsInRow = 16;
constexpr uint32_t kMaxLeavesInWindow = 256; // those after them are left out

// An object in a window.
struct WindowObject {
  uint64_t record; // hash
  uint64_t start;  // address
  uint64_t leaves[kMaxLeavesInWindow / 64];
  uint32_t stretches; // that accessed it
  uint32_t last;      // of these, by its place in the window; from 1
};

// One thread's window.
struct Window {
  static constexpr uint32_t kSlots = 256; // objects
  uint32_t stretches;                     // so far
  uint32_t objects;
  uint32_t windows; // of this row that are full
  WindowObject object[kSlots];
};

// A stretch was executed by this thread, with these pointers. True when the last window of a row is
// full; full ones have been added up.
bool add_stretch(Window &window, const UnitEntry &entry, const uint32_t *index, uint64_t stretch,
                 const void *const *bases);

// Adds up what an unfinished window has.
void close_window(Window &window);

// Writes what was added up since the last time.
void write_windows();
// The whole since the last reset, for a file that is being rewritten.
void write_all_windows(ProfileFile &to);
void drop_windows();
void reset_windows_in_child();

} // namespace assay::fields
