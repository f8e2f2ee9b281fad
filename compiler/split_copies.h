// Copies of whole records that the optimiser splits into accesses to single members.
#pragma once

#include "llvm/IR/PassInstrumentation.h"

namespace assay::compiler {

// Whenever SROA runs, what it makes of a copy gets a tag that follows from the copy's (member_tag_nodes.h):
// `list[i] = (S){i, 2, 3}` makes a value on the stack and copies it, and becomes three stores. A copy that the
// optimiser has made itself, of an argument that is passed by value to what it inlines, has no tag: then the
// accesses to the value have.
void follow_split_copies(llvm::PassInstrumentationCallbacks &passes);

} // namespace assay::compiler
