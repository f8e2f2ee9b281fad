// Accesses that the optimiser has made of two, to members of one object: which one, the running program chooses.
#pragma once

#include "compiler/member_tags.h"

namespace assay::compiler {

// `c ? p->left : p->right` becomes one load, at one of two distances behind p. Where the fields at all its distances
// are known, it becomes one access for each again. At the end of the pipeline, before the tags of the function are
// asked for.
void split_chosen_accesses(llvm::Function &function, MemberTags &tags);

} // namespace assay::compiler
