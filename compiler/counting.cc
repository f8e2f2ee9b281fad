// Hooks are declared from abi/hooks.def: their C types are translated to IR types here, at compile
// time, so that no second list of signatures exists.

#include "compiler/counting.h"

#include <cstdint>

#include "abi/shadow.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler {
namespace {

template <typename T> struct IrType;
template <> struct IrType<void> {
  static Type *get(LLVMContext &c) { return Type::getVoidTy(c); }
};
template <> struct IrType<uint32_t> {
  static Type *get(LLVMContext &c) { return Type::getInt32Ty(c); }
};
template <> struct IrType<uint64_t> {
  static Type *get(LLVMContext &c) { return Type::getInt64Ty(c); }
};
template <typename T> struct IrType<T *> {
  static Type *get(LLVMContext &c) { return PointerType::getUnqual(c); }
};

template <typename Signature> struct IrSignature;
template <typename Result, typename... Parameters> struct IrSignature<Result(Parameters...)> {
  static FunctionType *get(LLVMContext &c) {
    return FunctionType::get(IrType<Result>::get(c), {IrType<Parameters>::get(c)...}, false);
  }
};

FunctionType *hook_type(LLVMContext &c, StringRef wanted) {
#define ASSAY_HOOK(name, result, parameters, meaning)                                              \
  if (wanted == #name)                                                                             \
    return IrSignature<result parameters>::get(c);
#include "abi/hooks.def"
  report_fatal_error("assay: no such hook in abi/hooks.def");
}

void add(IRBuilder<> &builder, Value *address, uint64_t at, uint32_t n, bool atomic) {
  Type *i32 = builder.getInt32Ty();
  Value *counter =
      builder.CreateIntToPtr(builder.CreateAdd(address, builder.getInt64(at)), builder.getPtrTy());
  MDNode *empty = MDNode::get(builder.getContext(), {});
  if (atomic) {
    builder
        .CreateAtomicRMW(AtomicRMWInst::Add, counter, builder.getInt32(n), Align(4),
                         AtomicOrdering::Monotonic)
        ->setMetadata(LLVMContext::MD_nosanitize, empty);
    return;
  }
  LoadInst *old = builder.CreateAlignedLoad(i32, counter, Align(4));
  StoreInst *store =
      builder.CreateAlignedStore(builder.CreateAdd(old, builder.getInt32(n)), counter, Align(4));
  old->setMetadata(LLVMContext::MD_nosanitize, empty);
  store->setMetadata(LLVMContext::MD_nosanitize, empty);
}

} // namespace

void add_to_counter(IRBuilder<> &builder, Value *pointer, uint32_t reads, uint32_t writes,
                    bool atomic) {
  Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
  address = builder.CreateLShr(address, ASSAY_COUNTERS_SHIFT);
  address = builder.CreateAnd(address, builder.getInt64(~(ASSAY_COUNTER_BYTES - 1)));
  if (reads)
    add(builder, address, ASSAY_COUNTERS_BASE, reads, atomic);
  if (writes)
    add(builder, address, ASSAY_COUNTERS_BASE + 4, writes, atomic);
}

FunctionCallee hook(Module &module, StringRef name) {
  FunctionCallee callee = module.getOrInsertFunction(name, hook_type(module.getContext(), name));
  if (auto *function = dyn_cast<Function>(callee.getCallee())) {
    function->setDoesNotThrow();
    function->addFnAttr(Attribute::NoFree);
    function->addFnAttr(Attribute::WillReturn);
  }
  return callee;
}

} // namespace assay::compiler
