// A local variable begins where its function is entered and ends where it returns, whatever the
// scope says: slots of the stack that several variables would share are given to each by itself, by
// dropping the markers of their lifetimes. A variable whose function is left by longjmp, or by an
// exception that finds no cleanup, does not end; the next one there begins anew.
//
// Scalars are left out: registers hold them in optimised programs, and one word is used or not.

#include "compiler/objects_locals.h"

#include "compiler/counting.h"
#include "compiler/sites.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler::objects {
namespace {

std::string name_of(AllocaInst *variable, const Function &function) {
  std::string name;
  for (DbgVariableRecord *record : findDVRDeclares(variable))
    name = record->getVariable()->getName().str();
  if (name.empty())
    name = variable->hasName() ? variable->getName().str() : "a local variable";
  return name + " in " + demangle(function.getName().str());
}

uint64_t bytes_of(const AllocaInst *variable) {
  std::optional<TypeSize> size = variable->getAllocationSize(variable->getDataLayout());
  return size && !size->isScalable() ? size->getFixedValue() : 0;
}

// Before what leaves the function; a tail call leaves it, too.
SmallVector<Instruction *, 4> ends_of(Function &function) {
  SmallVector<Instruction *, 4> ends;
  for (BasicBlock &block : function)
    if (isa<ReturnInst, ResumeInst>(block.getTerminator())) {
      CallInst *tail = block.getTerminatingMustTailCall();
      ends.push_back(tail ? (Instruction *)tail : block.getTerminator());
    }
  return ends;
}

} // namespace

void LocalVariables::find() {
  for (Instruction &instruction : function_.getEntryBlock())
    if (auto *variable = dyn_cast<AllocaInst>(&instruction))
      if (variable->isStaticAlloca() && variable->getAllocatedType()->isAggregateType() &&
          bytes_of(variable))
        variables_.push_back(variable);
}

void LocalVariables::insert() {
  if (variables_.empty())
    return;
  Module &module = *function_.getParent();
  Sites sites(module);
  const SmallVector<Instruction *, 4> ends = ends_of(function_);
  for (AllocaInst *variable : variables_) {
    SmallVector<Instruction *, 4> markers;
    for (User *user : variable->users())
      if (auto *marker = dyn_cast<IntrinsicInst>(user); marker && marker->isLifetimeStartOrEnd())
        markers.push_back(marker);
    for (Instruction *marker : markers)
      marker->eraseFromParent();
    const uint64_t bytes = bytes_of(variable);
    const std::string name = name_of(variable, function_);
    const uint32_t type = sites.type_id({name, bytes, 0});
    IRBuilder<> begin(variable->getParent(), std::next(variable->getIterator()));
    begin.CreateCall(hook(module, "__assay_objects_local_begin"),
                     {variable, begin.getInt64(bytes)});
    for (Instruction *end : ends) {
      IRBuilder<> builder(end);
      builder.CreateCall(hook(module, "__assay_objects_local_end"),
                         {variable, builder.getInt64(bytes), builder.getInt32(type)});
    }
  }
}

} // namespace assay::compiler::objects
