// Code that counts how often stretches of code are executed, each thread by itself, and that
// reports them while windows are sampled.
#pragma once

#include "compiler/fields_flow.h"
#include "compiler/fields_unit.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler {

// A pointer that accesses of a stretch go through.
struct StretchBase {
  llvm::Value *pointer;
  llvm::Value *variable; // that it was loaded from, and that has not changed since; or null
};

// The accesses to fields of a piece of code.
struct Stretch {
  llvm::Instruction *last = nullptr; // of the accesses
  uint32_t piece = 0;                // of the function's Flow
  CommonPlace place;
  // Of the setting or copying of as many records as the program says when it runs: the bytes of all, and of one.
  llvm::Value *bytes = nullptr;
  uint64_t bytes_of_one = 0;
  llvm::SmallVector<FieldItem, 4> items;
  llvm::SmallVector<StretchBase, 4> bases;
};

struct ReportPlace;

class StretchCounters {
public:
  // naive: each stretch has a counter in memory.
  StretchCounters(llvm::Function &function, UnitFields &unit, llvm::LoopInfo &loops,
                  llvm::DominatorTree &dominators, bool naive)
      : function_(function), unit_(unit), loops_(loops), dominators_(dominators), naive_(naive) {}

  // Counts them all; they come in the order of the function.
  void count(llvm::ArrayRef<Stretch> stretches, Flow &flow);

private:
  // A counter, and where it is added to.
  struct Counter {
    uint64_t number;
    llvm::Instruction *place; // behind it
    bool before;              // no: before it
    llvm::Loop *loop;         // while which runs it is kept in a register; or null
    llvm::AllocaInst *variable = nullptr;
    const Stretch *of_records = nullptr; // whose number is added, instead of 1
  };
  using Quantities = llvm::DenseMap<uint32_t, UnitFields::Quantity>; // of pieces

  Quantities place_counters(llvm::ArrayRef<Stretch> stretches, Flow &flow);
  void place_all(llvm::ArrayRef<Stretch> stretches,
                 llvm::SmallVectorImpl<UnitFields::Quantity> &executions);
  std::optional<UnitFields::Quantity> new_counter(llvm::Instruction *place, bool before,
                                                  const Stretch *of_records = nullptr);
  UnitFields::Quantity counter_of(const Stretch &stretch);
  static llvm::Value *amount(llvm::IRBuilder<> &builder, const Counter &counter);
  llvm::Loop *quiet_loop_of(llvm::BasicBlock *block);
  bool is_quiet(llvm::Loop *loop);
  void find_distance();
  void emit_counters();
  void keep_in_registers();
  void add(llvm::IRBuilder<> &builder, uint64_t number, llvm::Value *n);
  void report(llvm::ArrayRef<Stretch> stretches, llvm::ArrayRef<uint64_t> numbers,
              const ReportPlace &place);
  void call_runtime(llvm::IRBuilder<> &builder, const Stretch &stretch, uint64_t number,
                    llvm::Value *unit);

  llvm::Function &function_;
  UnitFields &unit_;
  llvm::LoopInfo &loops_;
  llvm::DominatorTree &dominators_;
  const bool naive_;
  llvm::SmallVector<Counter, 32> counters_;
  llvm::Value *distance_ = nullptr;
  llvm::DenseMap<llvm::Loop *, bool> quiet_;
  llvm::DenseMap<llvm::Loop *, size_t> in_registers_;
};

} // namespace assay::compiler
