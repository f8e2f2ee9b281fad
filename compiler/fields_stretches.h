// Code that counts how often stretches of code are executed, each with a counter of its own, and each thread by itself.
#pragma once

#include "compiler/fields_unit.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler {

// A pointer that accesses of a stretch go through.
struct StretchBase {
  llvm::Value *pointer;
  llvm::Value *variable; // that it was loaded from, and that has not changed since; or null
};

// A piece of a basic block that is executed as a whole, with accesses to fields.
struct Stretch {
  llvm::Instruction *last = nullptr; // of the accesses
  uint32_t line = 0;
  llvm::SmallVector<FieldItem, 4> items;
  llvm::SmallVector<StretchBase, 4> bases;
};

// A call after which the function may not go on.
bool may_not_return(const llvm::Instruction &instruction);

class StretchCounters {
public:
  // naive: nothing is kept in registers.
  StretchCounters(llvm::Function &function, UnitFields &unit, llvm::LoopInfo &loops, bool naive)
      : function_(function), unit_(unit), loops_(loops), windows_(unit.has_windows()),
        naive_(naive) {}

  // Counts them all; they come in the order of the function.
  void count(llvm::ArrayRef<Stretch> stretches);

private:
  // A counter that is kept in a register while a loop runs.
  struct InLoop {
    uint64_t number;
    const Stretch *stretch;
    llvm::AllocaInst *left;  // executions until the counter is told; without windows: those so far
    llvm::AllocaInst *piece; // what left began with; null without windows
  };

  llvm::Loop *quiet_loop_of(llvm::BasicBlock *block);
  bool is_quiet(llvm::Loop *loop);
  void count_in_memory(uint64_t number, const Stretch &stretch, llvm::Value *distance);
  void count_in_loop(llvm::Loop &loop, llvm::Value *distance, llvm::ArrayRef<InLoop> counters);
  void step(const InLoop &counter);
  llvm::Value *distance_at(llvm::BasicBlock *block);
  llvm::Value *counter_at(llvm::IRBuilder<> &builder, llvm::Value *distance, uint64_t number);
  void add(llvm::IRBuilder<> &builder, llvm::Value *counter, llvm::Value *n,
           llvm::function_ref<void(llvm::IRBuilder<> &)> report);
  llvm::Value *tell(llvm::IRBuilder<> &builder, uint64_t number, llvm::Value *executions,
                    const Stretch *stretch);
  llvm::Value *thread();
  llvm::SmallVector<llvm::Value *, 4> arguments_of(llvm::IRBuilder<> &builder,
                                                   const Stretch *stretch);

  llvm::Function &function_;
  UnitFields &unit_;
  llvm::LoopInfo &loops_;
  const bool windows_, naive_;
  llvm::Value *thread_ = nullptr;
  llvm::DenseMap<llvm::BasicBlock *, llvm::Value *> distances_; // where they are read
  llvm::DenseMap<llvm::Loop *, bool> quiet_;
};

} // namespace assay::compiler
