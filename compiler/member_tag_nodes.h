// How the tags of accesses to members are written, and the places in the source that had them.
//
// A tag is metadata of an access: !assay.member !{type, first leaf, last leaf}, where the leaves
// are 1 and 0 for an access that the source does not make: a write to a bit-field first reads its
// storage. An access to something else has an empty tag; one to a record that debug information
// does not describe has a tag of one number. Of a copy, !assay.copy !{tag or null of the
// destination, tag or null of the source, their bytes, whether it has a source}. Of a call that is
// given addresses of members, !assay.arguments !{tag or null for each argument}. !assay.places has
// for each place !{function, line and column, tag or null for several tags, calls};
// !assay.copy.places and !assay.argument.places the same of tags of copies and of arguments.
#pragma once

#include <utility>

#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Metadata.h"

namespace assay::compiler {

inline constexpr char kMember[] = "assay.member";
inline constexpr char kCopy[] = "assay.copy";
inline constexpr char kArguments[] = "assay.arguments";
inline constexpr char kPlaces[] = "assay.places";
inline constexpr char kCopyPlaces[] = "assay.copy.places";
inline constexpr char kArgumentPlaces[] = "assay.argument.places";

// A line and a column of a function, and whether it is a write; or a line alone, and that.
using TagPlace = std::pair<const llvm::DISubprogram *, uint64_t>;
// The same, and the calls that it was inlined at when it was tagged (open_library_calls()).
using TagPlaceInCalls = std::pair<TagPlace, const llvm::MDNode *>;

TagPlace place_of(const llvm::DILocation &where, bool is_write);

unsigned inlining_depth(const llvm::DILocation &where);

// The innermost calls that a place was inlined at; null: none. The same node for the same calls.
const llvm::MDNode *calls_around(const llvm::DILocation &where, unsigned count);

llvm::ConstantAsMetadata *number_node(llvm::LLVMContext &context, uint64_t n);
uint64_t number_in(const llvm::MDNode &node, unsigned i);
llvm::MDNode *node_in(const llvm::MDNode &node, unsigned i); // or null

// Of a copy or a set of whole records or members: a tag of each side, or null, and the bytes for which its leaves
// count once.
struct CopyTag {
  llvm::MDNode *written = nullptr, *read = nullptr;
  uint64_t written_bytes = 0, read_bytes = 0;
  bool is_transfer = false;
};

// The tag of an access to leaves of a type.
llvm::MDNode *member_node(const llvm::DIType &type, uint32_t first_leaf, uint32_t last_leaf);

llvm::MDNode *copy_node(llvm::LLVMContext &context, const CopyTag &tag);
CopyTag copy_in(const llvm::MDNode &node);

// A tag of no type: of a record that debug information does not describe (leads_to_undescribed()), or of a member that
// cannot be told.
llvm::MDNode *undescribed_node(llvm::LLVMContext &context);
bool is_undescribed(const llvm::MDNode &tag);

} // namespace assay::compiler
