// The working set: which lines were touched in each period of the run, whose they are, and where the
// threads were.
#pragma once

namespace assay::workingset {

// This thread touched a line that is new in the snapshot, for the first time; frame: of the hook.
void say_where(const void *frame);

// This thread has used up its piece of accesses.
void pass_accesses();

} // namespace assay::workingset
