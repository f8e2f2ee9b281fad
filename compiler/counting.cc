// Hooks are declared from abi/hooks.def: their C types are translated to IR types here, at compile
// time, so that no second list of signatures exists.

#include "compiler/counting.h"

#include <cstdint>

#include "abi/fields.h"
#include "abi/shadow.h"
#include "abi/sites.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

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

// Blocks of one access that are counted without a call.
constexpr uint64_t kMaxInline = 8;

FunctionType *hook_type(LLVMContext &c, StringRef wanted) {
#define ASSAY_HOOK(name, result, parameters, meaning)                                              \
  if (wanted == #name)                                                                             \
    return IrSignature<result parameters>::get(c);
#define ASSAY_HOOK_QUIET(name, parameters, meaning) ASSAY_HOOK(name, void, parameters, meaning)
#define ASSAY_HOOK_QUIET_RESULT ASSAY_HOOK
#include "abi/hooks.def"
  report_fatal_error("assay: no such hook in abi/hooks.def");
}

bool is_layout(uint32_t counters, uint32_t layout) {
  return (counters & ASSAY_COUNTERS_LAYOUT) == layout;
}

} // namespace

uint64_t Counting::block_bytes() const {
  return is_layout(counters_, ASSAY_COUNTERS_FINE) ? ASSAY_BLOCK_BYTES / 2 : ASSAY_BLOCK_BYTES;
}

// The base of the shadow, where it is not a constant.
Value *Counting::base() {
  if (!base_ && counters_ & ASSAY_COUNTERS_DYNAMIC)
    base_ = load_at_entry(function_, "__assay_counters_base");
  return base_;
}

void Counting::add_at(IRBuilder<> &builder, Value *address, uint64_t at, uint32_t n,
                      unsigned bits) {
  if (n == 0)
    return;
  if (Value *dynamic = base())
    address = builder.CreateAdd(address, dynamic);
  else
    at += ASSAY_COUNTERS_BASE;
  Type *type = builder.getIntNTy(bits);
  Value *amount = builder.getIntN(bits, n);
  Align align(bits / 8);
  // Address space 256 is the gs segment: its base is the thread's stripe (abi/stripes.h).
  Value *counter = builder.CreateIntToPtr(builder.CreateAdd(address, builder.getInt64(at)),
                                          PointerType::get(builder.getContext(), 256));
  if (atomic_) {
    ours(builder.CreateAtomicRMW(AtomicRMWInst::Add, counter, amount, align,
                                 AtomicOrdering::Monotonic));
    return;
  }
  Value *old = ours(builder.CreateAlignedLoad(type, counter, align));
  ours(builder.CreateAlignedStore(builder.CreateAdd(old, amount), counter, align));
}

void Counting::add(IRBuilder<> &builder, Value *pointer, const Place &place, uint32_t reads,
                   uint32_t writes) {
  const uint64_t block = block_bytes(), blocks = place.reach / block;
  const uint64_t bytes = (uint64_t)(place.last - place.first) + 1;
  if (blocks > kMaxInline) {
    call(builder, pointer, place, reads, writes);
    return;
  }
  Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
  add_to(builder, address, reads, writes);
  for (uint64_t i = 1; i <= blocks; i++)
    add_to(builder, builder.CreateAdd(address, builder.getInt64(i * block)), reads, writes);
  if (place.reach % block == 0) // the last byte lies in the last of these
    return;
  Value *one_more = crosses(builder, pointer, bytes - blocks * block);
  IRBuilder<> next(SplitBlockAndInsertIfThen(one_more, builder.GetInsertPoint(), false,
                                             unlikely(builder.getContext())));
  next.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
  add_to(next, next.CreateAdd(address, next.getInt64(bytes - 1)), reads, writes);
}

void Counting::call(IRBuilder<> &builder, Value *pointer, const Place &place, uint32_t reads,
                    uint32_t writes) {
  auto count = [&](uint32_t n, uint32_t how) {
    for (; n > 0; n--)
      builder.CreateCall(hook(*function_.getParent(), "__assay_heap_masked"),
                         {pointer, builder.getInt64((uint64_t)(place.last - place.first) + 1),
                          builder.getInt64(1),
                          builder.getInt32(how | (atomic_ ? ASSAY_ACCESS_ATOMIC : 0))});
  };
  count(reads, ASSAY_ACCESS_READ);
  count(writes, ASSAY_ACCESS_WRITE);
}

void Counting::add_one(IRBuilder<> &builder, Value *pointer, uint32_t reads, uint32_t writes) {
  add_to(builder, builder.CreatePtrToInt(pointer, builder.getInt64Ty()), reads, writes);
}

Value *Counting::crosses(IRBuilder<> &builder, Value *pointer, uint64_t bytes) {
  Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
  return builder.CreateICmpUGT(builder.CreateAnd(address, builder.getInt64(block_bytes() - 1)),
                               builder.getInt64(block_bytes() - bytes));
}

void Counting::add_to(IRBuilder<> &builder, Value *address, uint32_t reads, uint32_t writes) {
  bool fine = is_layout(counters_, ASSAY_COUNTERS_FINE);
  uint64_t counter_bytes = fine ? ASSAY_COUNTER_BYTES / 2 : ASSAY_COUNTER_BYTES;
  address = builder.CreateLShr(address, ASSAY_COUNTERS_SHIFT);
  address = builder.CreateAnd(address, builder.getInt64(~(counter_bytes - 1)));
  if (fine) {
    add_at(builder, address, 0, reads + writes, 32);
  } else if (is_layout(counters_, ASSAY_COUNTERS_TOTAL)) {
    add_at(builder, address, 0, reads + writes, 64);
  } else { // two additions of 32 bits: mixing widths would defeat store forwarding
    add_at(builder, address, 0, reads, 32);
    add_at(builder, address, 4, writes, 32);
  }
}

MDNode *unlikely(LLVMContext &context) {
  return MDBuilder(context).createUnlikelyBranchWeights();
}

Value *load_at_entry(Function &function, StringRef name) {
  IRBuilder<> builder(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
  Constant *variable = function.getParent()->getOrInsertGlobal(name, builder.getInt64Ty());
  return ours(builder.CreateLoad(builder.getInt64Ty(), variable));
}

Constant *thread_local_hook(Module &module, StringRef name, Type *type) {
  return module.getOrInsertGlobal(name, type, [&] {
    return new GlobalVariable(module, type, false, GlobalValue::ExternalLinkage, nullptr, name,
                              nullptr, GlobalValue::InitialExecTLSModel);
  });
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

CallInst *call_keeping_registers(IRBuilder<> &builder, StringRef name,
                                 ArrayRef<Value *> arguments) {
  FunctionCallee callee = hook(*builder.GetInsertBlock()->getModule(), name);
  CallInst *call = builder.CreateCall(callee, arguments);
  if (auto *function = dyn_cast<Function>(callee.getCallee())) {
    function->setCallingConv(CallingConv::PreserveMost);
    // The loader's resolver, which the first call from a shared library would come to, keeps arguments alone.
    function->addFnAttr(Attribute::NonLazyBind);
  }
  call->setCallingConv(CallingConv::PreserveMost);
  return call;
}

} // namespace assay::compiler
