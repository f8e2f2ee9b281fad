// The code that marks words as touched, or counts accesses to them (abi/word_encoding.h).
#pragma once

#include "abi/word_encoding.h"
#include "compiler/access.h"
#include "compiler/access_groups.h"
#include "compiler/check_placement.h"
#include "compiler/tool_pass.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler::objects {

// In one function. The code comes right behind the instruction that touches.
class WordTouches {
public:
  WordTouches(llvm::Function &function, const ToolRequest &options);

  void mark(const Check &check);
  void count(const AccessGroup &group);
  void mark(llvm::Instruction &instruction, const RangeAccess &range);
  void mark(llvm::Instruction &instruction, const VectorAccess &access);
  void mark(llvm::Instruction &instruction, const StringAccess &access);
  void mark(llvm::Instruction &instruction, const MaskedAccess &access);

private:
  llvm::Value *place_of(llvm::IRBuilder<> &builder, llvm::Value *pointer, int64_t offset);
  llvm::Value *at(llvm::IRBuilder<> &builder, llvm::Value *place, uint64_t offset);
  llvm::Value *any_new_byte(llvm::IRBuilder<> &builder, llvm::ArrayRef<llvm::Value *> places);
  llvm::Value *any_missing(llvm::IRBuilder<> &builder, llvm::ArrayRef<TouchedByte> bytes,
                           llvm::ArrayRef<llvm::Value *> places);
  void set(llvm::IRBuilder<> &builder, uint32_t mask, llvm::Value *place);
  llvm::Value *missing_bits(llvm::IRBuilder<> &builder, const TouchedByte &byte, llvm::Value *place,
                            llvm::Value *&bits);
  void mark_bits(const Check &check);
  void add(llvm::IRBuilder<> &builder, llvm::Value *place, uint32_t accesses);

  llvm::Function &function_;
  llvm::Module &module_;
  const ToolRequest &options_;
  const AssayWordEncoding form_;
  llvm::Value *base_ = nullptr; // of the shadow, where it is dynamic
};

} // namespace assay::compiler::objects
