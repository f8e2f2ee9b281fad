// Which field an access is to: tagged at the start of the pipeline (tag_members.h), found again at
// its end.
#pragma once

#include <optional>

#include "compiler/access.h"
#include "compiler/member_tag_nodes.h"
#include "compiler/record_layout.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

namespace assay::compiler {

// That of an access; null: it has none, because it was made of others since.
llvm::MDNode *member_tag(const llvm::Instruction &access);

// What an access reaches: leaves of a record.
struct MemberAccess {
  const RecordLayout *record = nullptr; // null: of no field
  LeafRange leaves;
  bool is_lost = false; // of a field, as its line says; which is not known
  uint64_t times = 1;   // accesses of the source to each of them
  std::optional<int64_t>
      from; // where the record begins, behind the address; else the first leaf is at the address
  bool is_copy = false; // of a whole record or member
};

// Of what a range copies or sets, its destination and its source.
struct MemberCopy {
  MemberAccess written, read;
  uint64_t written_bytes = 0,
           read_bytes = 0; // of the record or member, for each of which the leaves count once
};

// Whether the index of an address counts records of so many bytes, and is not one of an array in a record.
bool steps_by(const llvm::GEPOperator &indexed, uint64_t record_bytes,
              const llvm::DataLayout &layout);

// The tags of a module, at the end of the pipeline.
class MemberTags {
public:
  explicit MemberTags(llvm::Module &module);
  // Before the accesses of a function are asked for.
  void begin(llvm::Function &function);
  // Of an access that was made of several, several.
  llvm::SmallVector<MemberAccess, 1> find(llvm::Instruction &instruction, const Access &access);
  // Of a gather, a scatter, or a load or store under a mask: what one lane is to.
  llvm::SmallVector<MemberAccess, 1> find(llvm::Instruction &instruction,
                                          const MaskedAccess &access);
  MemberCopy find_copy(const llvm::AnyMemIntrinsic &call);
  // The tag of what an access that was made of several is to, if it is at this distance behind a
  // base. Null: that is not known.
  llvm::MDNode *tag_behind(const llvm::Instruction &access, const llvm::Value *base,
                           int64_t distance, const llvm::DominatorTree &dominators) const;
  // Of what a call of a function that is known accesses behind the address that it is given.
  MemberAccess find_argument(const llvm::CallBase &call, const llvm::Value *pointer);
  // Where an object of the record begins, in bytes behind a pointer without constant distances, as accesses to
  // other members say; 0 where none do.
  int64_t begin_behind(const llvm::Value *base, const RecordLayout &record) const;
  // The tags were read.
  static void remove(llvm::Module &module);

private:
  // What begins so many bytes after a pointer, as an access says.
  struct Base {
    const RecordLayout *record;
    int64_t offset;
    const llvm::Instruction *access;
  };

  void note_bases(const llvm::DICompositeType &record);
  MemberAccess read(const llvm::MDNode *tag);
  MemberCopy read_copy(const llvm::MDNode &tag);
  MemberAccess half_of_copy(const llvm::Instruction &instruction, const Access &access);
  const llvm::MDNode *arguments_of(const llvm::Instruction &instruction) const;
  MemberAccess part_of_member(const llvm::Instruction &instruction, const Access &access);
  // The tag of what the optimiser has made of several copies, or of stores to whole records.
  MemberCopy copy_of_several(const llvm::AnyMemIntrinsic &call);
  const llvm::MDNode *tag_at(const llvm::Instruction &instruction, bool writes) const;
  // A record, and where the access is in it.
  struct InRecord {
    const RecordLayout *record = nullptr;
    uint64_t offset = 0;
  };
  // The pointer without constant distances, which are added to `offset`; of a lane of several
  // pointers, what these have in common.
  const llvm::Value *base_of(const llvm::Value *pointer, int64_t &offset) const;
  InRecord by_base(const llvm::Value *pointer) const;
  InRecord by_copy(const llvm::Instruction &instruction, const Access &access);
  InRecord by_alias_tag(const llvm::Instruction &instruction);
  static bool is_joined(const llvm::Instruction &instruction, const Access &access,
                        const MemberAccess &tagged);
  static bool is_in_array(const MemberAccess &tagged, const Access &access);
  InRecord around(const MemberAccess &tagged, const Access &access) const;
  bool may_be_derived(const RecordLayout &record, const llvm::Value *pointer) const;
  llvm::SmallVector<MemberAccess, 1> members_at(const llvm::Instruction &instruction,
                                                const Access &access, const InRecord &place) const;
  // By the source.
  bool is_accessed_in(const llvm::DISubprogram *function, const RecordLayout &record, uint32_t leaf,
                      bool writes) const;
  llvm::SmallVector<LeafRange, 1> leaves_accessed(const RecordLayout &record, LeafRange leaves,
                                                  bool writes) const;
  bool is_one_of_several(const llvm::Value *pointer) const;

  RecordLayouts layouts_;
  llvm::DenseMap<TagPlaceInCalls, const llvm::MDNode *> at_place_; // null: there are several
  llvm::DenseMap<TagPlace, const llvm::MDNode *> copies_at_place_, arguments_at_place_; // likewise
  llvm::DenseSet<TagPlace> at_line_;
  llvm::StringMap<const llvm::DIType *> by_name_;           // as alias tags name them
  llvm::DenseSet<const llvm::DICompositeType *> inherited_; // by others that have tags
  const llvm::DataLayout &layout_;
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<Base, 2>>
      bases_; // of the function; none is empty
  // A member that the source accesses in a function: twice the number of the leaf, and 1 where it writes.
  using Accessed = std::pair<const llvm::DISubprogram *, std::pair<const RecordLayout *, uint64_t>>;
  llvm::DenseSet<Accessed> accessed_;
  llvm::DenseSet<const llvm::DISubprogram *>
      unclear_; // several of its members are accessed at one place
  llvm::SmallPtrSet<const llvm::DISubprogram *, 8>
      sources_; // of the function: its own, and those inlined in it
};

} // namespace assay::compiler
