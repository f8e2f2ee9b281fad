// The code that marks lines as touched: it looks at their bytes in the shadow, and calls the runtime where a
// line is new.
#pragma once

#include "abi/line_encoding.h"
#include "compiler/access.h"
#include "compiler/check_placement.h"
#include "compiler/tool_pass.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler::workingset {

// In one function. The code comes right behind the instruction that touches.
class LineTouches {
public:
  LineTouches(llvm::Function &function, const ToolRequest &options);

  void mark(const Check &look);
  // Ranges of one length.
  void mark(llvm::Instruction &instruction, llvm::ArrayRef<RangeAccess> ranges);
  void mark(llvm::Instruction &instruction, const VectorAccess &access);
  void mark(llvm::Instruction &instruction, const StringAccess &access);
  void mark(llvm::Instruction &instruction, const MaskedAccess &access);
  // At the end of a block that makes so many accesses, before what it decides.
  void tick(llvm::Instruction &end, uint32_t accesses);

private:
  struct Mark {
    llvm::Value *line; // its number
    llvm::Value *sign; // i8; negative: the line is marked
  };

  Mark mark_of(llvm::IRBuilder<> &builder, const TouchedByte &byte);
  llvm::Value *marks_of(llvm::IRBuilder<> &builder, llvm::ArrayRef<TouchedByte> bytes,
                        llvm::SmallVectorImpl<llvm::Value *> *lines = nullptr);
  void unless_touched(llvm::IRBuilder<> &builder, llvm::ArrayRef<llvm::Value *> pointers,
                      llvm::Value *bytes, llvm::function_ref<void(llvm::IRBuilder<> &)> call);
  void unless_different(llvm::IRBuilder<> &builder, const StringAccess &access,
                        llvm::function_ref<void(llvm::IRBuilder<> &)> call);
  llvm::Value *base();
  llvm::MDNode *unlikely() const;

  llvm::Function &function_;
  llvm::Module &module_;
  const ToolRequest &options_;
  const AssayLineEncoding form_;
  llvm::Value *base_ = nullptr;
};

} // namespace assay::compiler::workingset
