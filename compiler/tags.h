// Tags: what the source says of an instruction, attached at the start of the pipeline, before
// optimisation forgets it.
#pragma once

#include <optional>

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace assay::compiler {

// The type of the objects that an allocation makes.
struct TaggedType {
  llvm::StringRef name;
  uint64_t size;   // sizeof, bytes; 0 if unknown
  uint64_t layout; // hash of its members' offsets; 0 if unknown
};

// Tags every allocation call of the module whose type the source tells: by clang's allocation
// tokens, by the debug info of `new`, or by the first typed use of the result.
void tag_allocations(llvm::Module &module);

// Does the call allocate, or free, as far as its callee's attributes or name tell?
bool is_allocation(const llvm::CallBase &call);
bool is_free(const llvm::CallBase &call);

std::optional<TaggedType> tagged_type(const llvm::CallBase &call);

// Tags were read: nothing is left that names places of allocations.
void remove_places(llvm::Module &module);

} // namespace assay::compiler
