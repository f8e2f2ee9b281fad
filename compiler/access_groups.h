// The accesses of a basic block, grouped by the blocks of memory that they surely reach together.
// Whoever counts accesses adds each group's sum once; whoever asks which objects are accessed asks
// once a group.
#pragma once

#include "compiler/places.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"

namespace assay::compiler {

// Accesses of one place.
struct AccessGroup {
  Place place; // of an access, as is the pointer
  llvm::Value *pointer = nullptr;
  llvm::Instruction *last = nullptr; // of its accesses
  size_t order = 0;                  // of that one, in the function
  uint32_t reads = 0, writes = 0;
};

// Neighbours from one base, in their order in memory: mostly they lie in one block, and one
// question says whether they do.
using AccessCluster = llvm::SmallVector<AccessGroup, 1>;

class AccessGroups {
public:
  // naive: each access is a group of its own.
  AccessGroups(const llvm::DataLayout &layout, uint64_t block_bytes, bool naive)
      : layout_(layout), block_bytes_(block_bytes), naive_(naive) {}

  void add(llvm::Instruction &instruction, const Access &access);
  // What comes shares nothing with what was: the end of a basic block, or a barrier in it.
  void close();

  // Of all that was closed, in the order of the function.
  llvm::ArrayRef<AccessCluster> clusters() const { return clusters_; }

private:
  size_t neighbours(llvm::ArrayRef<AccessGroup> groups) const;

  const llvm::DataLayout &layout_;
  const uint64_t block_bytes_;
  const bool naive_;
  llvm::MapVector<decltype(Place().key()), AccessGroup> open_; // since the last close()
  size_t added_ = 0;
  llvm::SmallVector<AccessCluster, 32> clusters_;
};

} // namespace assay::compiler
