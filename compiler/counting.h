// Code that counts: the arithmetic of abi/shadow.h as IR.
#pragma once

#include "compiler/places.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler {

// How a function counts: the layout of counters and their base (a sum of enum AssayCounters, abi/
// sites.h). Atomic: no update is lost to another thread.
class Counting {
public:
  Counting(llvm::Function &function, uint32_t counters, bool atomic)
      : function_(function), counters_(counters), atomic_(atomic) {}

  // Bytes of program that share a counter.
  uint64_t block_bytes() const;

  // Adds reads and writes to the counter of each block that an access at pointer, in this place, reaches. The
  // builder must not be used afterwards: its basic block may have been split.
  void add(llvm::IRBuilder<> &builder, llvm::Value *pointer, const Place &place, uint32_t reads,
           uint32_t writes);
  // The same by calls of the runtime. The builder stays.
  void call(llvm::IRBuilder<> &builder, llvm::Value *pointer, const Place &place, uint32_t reads,
            uint32_t writes);
  // The same for an access that reaches no other block.
  void add_one(llvm::IRBuilder<> &builder, llvm::Value *pointer, uint32_t reads, uint32_t writes);
  // True where so many bytes from pointer, at most a block's, lie in two blocks.
  llvm::Value *crosses(llvm::IRBuilder<> &builder, llvm::Value *pointer, uint64_t bytes);

private:
  void add_to(llvm::IRBuilder<> &builder, llvm::Value *address, uint32_t reads, uint32_t writes);
  void add_at(llvm::IRBuilder<> &builder, llvm::Value *address, uint64_t at, uint32_t n,
              unsigned bits);
  llvm::Value *base();
  llvm::Function &function_;
  uint32_t counters_;
  bool atomic_;
  llvm::Value *base_ = nullptr;
};

// For branches that are seldom taken.
llvm::MDNode *unlikely(llvm::LLVMContext &context);

// The instruction: an access of a tool's own, which nobody takes for the program's.
template <typename T> T *ours(T *instruction) {
  instruction->setMetadata(llvm::LLVMContext::MD_nosanitize,
                           llvm::MDNode::get(instruction->getContext(), {}));
  return instruction;
}

// The runtime's function of abi/hooks.def.
llvm::FunctionCallee hook(llvm::Module &module, llvm::StringRef name);

// Calls a hook of the convention preserve_most (ASSAY_HOOK_QUIET).
llvm::CallInst *call_keeping_registers(llvm::IRBuilder<> &builder, llvm::StringRef name,
                                       llvm::ArrayRef<llvm::Value *> arguments);

// Its variables: the address of a thread's, and the value of a 64-bit one, read once at the function's entry.
llvm::Constant *thread_local_hook(llvm::Module &module, llvm::StringRef name, llvm::Type *type);
llvm::Value *load_at_entry(llvm::Function &function, llvm::StringRef name);

} // namespace assay::compiler
