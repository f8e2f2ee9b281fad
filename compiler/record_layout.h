// Structs, classes and unions as debug information describes them, with nested ones in their places.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace assay::compiler {

// A field, or one of a record that is nested in the record (abi/fields.h).
struct Leaf {
  uint64_t offset_bits = 0, size_bits = 0;
  uint32_t flags = 0;
  uint64_t elements = 1, stride = 0; // stride in bytes
  uint64_t alignment = 1;            // bytes
  std::string name, type;
  llvm::SmallVector<const llvm::DIDerivedType *, 4>
      path; // the members that lead to it, outermost first
};

struct RecordLayout {
  const llvm::DICompositeType *type = nullptr;
  std::string name, file;
  uint64_t size = 0; // bytes
  uint32_t line = 0;
  uint64_t hash = 0;
  std::vector<Leaf> leaves; // by path; unions in the order of their members
};

// Leaves first to last of a layout.
struct LeafRange {
  uint32_t first = 0, last = 0;
};

// Both without typedefs and qualifiers. Of an array of arrays, what these have; of no array, the type itself.
const llvm::DIType *element_of(const llvm::DIType *type);
bool is_array(const llvm::DIType *type);

// Without typedefs and qualifiers; null if it is no record.
const llvm::DICompositeType *record_of(const llvm::DIType *type);

// The member with that number among those that have a place: static ones and what the compiler adds are not counted.
const llvm::DIDerivedType *member_of(const llvm::DICompositeType &record, unsigned number);

class RecordLayouts {
public:
  // Null for one that is only declared, or too large to list. `named` may be a typedef of it, whose
  // name it gets if it has none.
  const RecordLayout *find(const llvm::DIType *named);

  // The leaves that these members lead to.
  static std::optional<LeafRange> leaves_at(const RecordLayout &layout,
                                            llvm::ArrayRef<const llvm::DIDerivedType *> path);
  // The leaves whose bytes an access of so many bytes at an offset from the record's begin reaches.
  // Of an array of nested records, those of the element there.
  static std::optional<LeafRange> leaves_in(const RecordLayout &layout, uint64_t offset,
                                            uint64_t bytes);

private:
  llvm::DenseMap<const llvm::DICompositeType *, std::unique_ptr<RecordLayout>> known_;
};

} // namespace assay::compiler
