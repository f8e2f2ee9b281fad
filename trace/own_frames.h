// Code whose frames the program finds by their return addresses: collectors and stacks that grow
// know what lies in a frame from a table by address. Moved, its frames would not be found, and the
// program would end or never go on.
#pragma once

#include "binary/flow_graph.h"

#include <vector>

namespace trace {

class OwnFrames {
public:
  explicit OwnFrames(const image::Executable &executable);

  // Whether it must stay. `has_unwind_entry`: an unwind table covers it.
  bool are_of(const binary::Routine &routine, const binary::FlowGraph &graph,
              bool has_unwind_entry) const;

private:
  bool has_unwind_tables_; // of many functions
};

} // namespace trace
