// The calls around a place are a list of nodes, which LLVM keeps once however often they are made.

#include "compiler/member_tag_nodes.h"

using namespace llvm;

namespace assay::compiler {

uint64_t number_in(const MDNode &node, unsigned i) {
  return mdconst::extract<ConstantInt>(node.getOperand(i))->getZExtValue();
}

TagPlace place_of(const DILocation &where, bool is_write) {
  return {where.getScope()->getSubprogram(),
          (uint64_t)where.getLine() << 32 | (uint64_t)where.getColumn() << 1 | is_write};
}

unsigned inlining_depth(const DILocation &where) {
  unsigned depth = 0;
  for (const DILocation *call = where.getInlinedAt(); call; call = call->getInlinedAt())
    depth++;
  return depth;
}

ConstantAsMetadata *number_node(LLVMContext &context, uint64_t n) {
  return ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(context), n));
}

const MDNode *calls_around(const DILocation &where, unsigned count) {
  LLVMContext &context = where.getContext();
  MDNode *calls = nullptr;
  const DILocation *call = where.getInlinedAt();
  for (unsigned i = 0; i < count; i++, call = call->getInlinedAt()) {
    const auto [function, column] = place_of(*call, false);
    calls = MDNode::get(
        context, {const_cast<DISubprogram *>(function), number_node(context, column), calls});
  }
  return calls;
}

MDNode *node_in(const MDNode &node, unsigned i) {
  return dyn_cast_or_null<MDNode>(node.getOperand(i).get());
}

MDNode *member_node(const DIType &type, uint32_t first_leaf, uint32_t last_leaf) {
  LLVMContext &context = type.getContext();
  return MDNode::get(context, {const_cast<DIType *>(&type), number_node(context, first_leaf),
                               number_node(context, last_leaf)});
}

MDNode *copy_node(LLVMContext &context, const CopyTag &tag) {
  return MDNode::get(context,
                     {tag.written, tag.read, number_node(context, tag.written_bytes),
                      number_node(context, tag.read_bytes), number_node(context, tag.is_transfer)});
}

CopyTag copy_in(const MDNode &node) {
  return {node_in(node, 0), node_in(node, 1), number_in(node, 2), number_in(node, 3),
          number_in(node, 4) != 0};
}

MDNode *undescribed_node(LLVMContext &context) {
  return MDNode::get(context, {number_node(context, 0)});
}

bool is_undescribed(const MDNode &tag) {
  return tag.getNumOperands() == 1;
}

} // namespace assay::compiler
