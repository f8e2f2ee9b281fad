// The runtime within a statically linked executable (abi/carried_runtime.h). There is no libc that
// it may call, and nobody has relocated it.
#pragma once

#include "abi/carried_runtime.h"

#include "runtime/relocated/relocated.h"

namespace assay::relocated {

// Written by the tool, which finds it by its name.
extern "C" [[gnu::visibility("protected")]] AssayCarriedRuntime assay_carried_runtime;

// What a linked address of the program is in this process.
inline uint64_t loaded(uint64_t linked) {
  return linked + (uint64_t)&assay_carried_runtime - assay_carried_runtime.self;
}

// Adds the unwind entries of moved code to those of the program, and whether there is room for them (unwinding.cc).
bool can_show_to_unwinders(const AssayMovedHeader &moved);
void show_to_unwinders(const MovedModule &module);

} // namespace assay::relocated
