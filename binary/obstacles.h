// Whether a routine's code can be moved: executed at another place, with other code between its
// instructions.
#pragma once

#include "binary/flow_graph.h"

namespace binary {

enum class Immovable : uint8_t {
  movable,
  not_understood,   // WhyNot says more
  labels,           // its labels lie in data as addresses, and jumps go there through pointers
  entered_within,   // calls or pointers enter it at more than its beginning
  overlaps,         // an instruction begins within another one
  shared_table,     // a jump table has entries that lead elsewhere than into it
  changes_segments, // sets the base of fs, as only what starts threads does
  too_short,        // no room for a jump of five bytes to the moved code
};
// "movable", "labels" …, and a sentence.
const char *immovable_name(Immovable why);
const char *immovable_meaning(Immovable why);

// Tables of unwinding and landing pads are no obstacle: whoever moves the code translates addresses for the
// unwinder.
Immovable eligibility(const Routine &routine, const FlowGraph &graph);

// Parts of that answer, for who can move more than a jump at the beginning alone allows.
bool has_overlaps(const FlowGraph &graph);
bool has_shared_table(const Routine &routine, const FlowGraph &graph);
bool changes_segments(const FlowGraph &graph);

} // namespace binary
