// What a routine keeps on its stack for later: values that are stored at one place and loaded behind it.
#pragma once

#include "binary/ssa.h"

#include <unordered_map>

namespace binary {

class Forms;

// By value that is loaded: what was stored, of which the loaded bytes are the low ones. Empty where the address of
// something on the stack goes where it is not followed: into another register, to memory, with an index.
//
// Taken for granted, as compilers do: nobody else writes what a routine addresses through its stack pointer alone.
std::unordered_map<uint32_t, ValueId> find_spills(const FlowGraph &graph, const Ssa &ssa,
                                                  Forms &forms);

} // namespace binary
