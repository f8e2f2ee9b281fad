// The type's id waits in a thread-local for the allocation function, and is taken back after the
// call: a custom operator new that allocates nothing must not give its type to somebody else's
// block.

#include "compiler/allocations.h"

#include "compiler/counting.h"
#include "compiler/tags.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// `return malloc(n)` as a jump would leave the function that allocates out of the stack; so would
// a `free` at a function's end.
bool keep_frame(CallBase &call) {
  auto *plain = dyn_cast<CallInst>(&call);
  if (!plain || !(is_allocation(call) || is_free(call)) || !plain->isTailCall() ||
      plain->isMustTailCall())
    return false;
  plain->setTailCallKind(CallInst::TCK_NoTail);
  return true;
}

void announce(CallBase &call, uint32_t id) {
  Module &module = *call.getModule();
  Constant *variable =
      thread_local_hook(module, "__assay_next_type", Type::getInt32Ty(module.getContext()));
  auto set = [&](BasicBlock::iterator where, uint32_t value) {
    IRBuilder<> builder(call.getParent(), where);
    builder.SetCurrentDebugLocation(call.getDebugLoc());
    StoreInst *store =
        builder.CreateStore(builder.getInt32(value), builder.CreateThreadLocalAddress(variable));
    store->setVolatile(true); // LTO knows that malloc reads no variable, and would leave it out
    ours(store);
  };
  set(call.getIterator(), id);
  if (isa<CallInst>(call) && !cast<CallInst>(call).isMustTailCall()) {
    cast<CallInst>(call).setTailCallKind(CallInst::TCK_NoTail);
    set(std::next(call.getIterator()), 0);
  }
}

} // namespace

bool instrument_allocations(Function &function, Sites &sites) {
  bool changed = false;
  SmallVector<std::pair<CallBase *, TaggedType>, 8> typed; // asked once
  for (BasicBlock &block : function)
    for (Instruction &instruction : block)
      if (auto *call = dyn_cast<CallBase>(&instruction)) {
        changed |= keep_frame(*call);
        if (std::optional<TaggedType> type = tagged_type(*call))
          typed.push_back({call, *type});
      }
  for (auto &[call, type] : typed)
    announce(*call, sites.type_id(type));
  return changed || !typed.empty();
}

} // namespace assay::compiler
