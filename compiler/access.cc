// The same questions for naive and coalesced instrumentation, so that both count the same. Each
// refusal is one line with its reason.

#include "compiler/access.h"

#include "compiler/io_accesses.h"
#include "compiler/x86_accesses.h"

#include <algorithm>

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler {
namespace {

bool interesting_pointer(const Value *pointer, Interest interest) {
  if (pointer->getType()->getScalarType()->getPointerAddressSpace() !=
      0) // thread-local by segment, devices
    return false;
  if (pointer->isSwiftError()) // not memory
    return false;
  const Value *object = getUnderlyingObject(pointer, 12);
  if (isa<AllocaInst>(object)) // nobody asks the stack
    return interest.stack;
  if (auto *argument = dyn_cast<Argument>(object);
      argument && argument->hasByValAttr()) // the stack again
    return interest.stack;
  if (auto *global = dyn_cast<GlobalVariable>(object)) // nor globals; those of threads are stack
    return global->isThreadLocal() ? interest.stack : interest.globals;
  if (isa<GlobalValue>(object)) // functions and aliases
    return false;
  if (isa<ConstantPointerNull>(object) || isa<UndefValue>(object)) // a deliberate fault
    return false;
  return true;
}

bool excluded(const Instruction &instruction) {
  return instruction.hasMetadata(
      LLVMContext::MD_nosanitize); // another instrumentation's own access
}

uint64_t bytes_of(const Instruction &instruction, Type *type) {
  TypeSize size = instruction.getDataLayout().getTypeStoreSize(type);
  return size.isScalable() ? 0 : size.getFixedValue();
}

// memcpy and memset of at most this many bytes become single accesses.
constexpr uint64_t kScalarBytes = 8;

bool is_scalar_length(const Value *length) {
  auto *constant = dyn_cast<ConstantInt>(length);
  return constant && constant->getZExtValue() > 0 && constant->getZExtValue() <= kScalarBytes;
}

// A small memset is one store; a small memcpy one load and one store, which two accesses cannot
// share: it stays a range.
std::optional<Access> small_memset(Instruction &instruction, Interest interest) {
  auto *set = dyn_cast<MemSetInst>(&instruction);
  if (!set || !is_scalar_length(set->getLength()) || !interesting_pointer(set->getDest(), interest))
    return std::nullopt;
  uint64_t bytes = cast<ConstantInt>(set->getLength())->getZExtValue();
  return Access{set->getDest(), bytes, set->getDestAlign().valueOrOne(), false, true};
}

// The function of libc that the instruction calls, unless the program brings its own. What -fno-builtin and
// -ffreestanding forbid is to take such calls for something else; who is called stays the same.
std::optional<LibFunc> library_function(const Instruction &instruction,
                                        const TargetLibraryInfo &library) {
  auto *call = dyn_cast<CallBase>(&instruction);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  LibFunc function;
  if (!callee || callee->isIntrinsic() || !callee->isDeclaration() ||
      !library.getLibFunc(*callee, function))
    return std::nullopt;
  return function;
}

Value *constant_bytes(const Instruction &instruction, Type *type) {
  return ConstantInt::get(Type::getInt64Ty(instruction.getContext()), bytes_of(instruction, type));
}

// The backend copies what a byval argument points at, when the call is made.
void add_copied_arguments(CallBase &call, function_ref<void(const RangeAccess &)> add) {
  for (unsigned i = 0; i < call.arg_size(); i++)
    if (call.isByValArgument(i))
      add({call.getArgOperand(i), constant_bytes(call, call.getParamByValType(i)), false, true});
}

// The operands that inline assembly has in memory, as their types say. No instruction, no access: empty
// text with such operands hides values from the optimiser.
void add_operands(CallBase &call, function_ref<void(const RangeAccess &)> add) {
  auto *assembly = cast<InlineAsm>(call.getCalledOperand());
  if (StringRef(assembly->getAsmString()).trim().empty())
    return;
  unsigned argument = 0;
  for (const InlineAsm::ConstraintInfo &operand : assembly->ParseConstraints()) {
    if (!operand.hasArg())
      continue;
    if (Type *type = operand.isIndirect ? call.getParamElementType(argument) : nullptr)
      add({call.getArgOperand(argument), constant_bytes(call, type),
           operand.Type == InlineAsm::isOutput, ends_block(call)});
    argument++;
  }
}

// How many bytes two strings are compared for at most, if one of them is a constant; null otherwise.
ConstantInt *end_of_constant(const Value *a, const Value *b) {
  uint64_t of_a = GetStringLength(a), of_b = GetStringLength(b); // 0 if unknown
  uint64_t bytes = of_a && of_b ? std::min(of_a, of_b) : std::max(of_a, of_b);
  return bytes ? ConstantInt::get(Type::getInt64Ty(a->getContext()), bytes) : nullptr;
}

} // namespace

bool ends_block(const Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  return instruction.isTerminator() || (call && call->isMustTailCall());
}

std::optional<Access> interesting(Instruction &instruction, Interest interest) {
  if (excluded(instruction))
    return std::nullopt;
  Access access = {};
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    access = {load->getPointerOperand(), bytes_of(instruction, load->getType()), load->getAlign(),
              true, false};
  } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    access = {store->getPointerOperand(),
              bytes_of(instruction, store->getValueOperand()->getType()), store->getAlign(), false,
              true};
  } else if (auto *rmw = dyn_cast<AtomicRMWInst>(&instruction)) {
    access = {rmw->getPointerOperand(), bytes_of(instruction, rmw->getValOperand()->getType()),
              rmw->getAlign(), true, true};
  } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    access = {exchange->getPointerOperand(),
              bytes_of(instruction, exchange->getCompareOperand()->getType()), exchange->getAlign(),
              true, true};
  } else {
    return small_memset(instruction, interest);
  }
  if (!interesting_pointer(access.pointer, interest))
    return std::nullopt;
  return access;
}

SmallVector<RangeAccess, 2>
interesting_ranges(Instruction &instruction, const TargetLibraryInfo &library, Interest interest) {
  SmallVector<RangeAccess, 2> ranges;
  auto *call = dyn_cast<CallBase>(&instruction);
  if (!call || excluded(instruction))
    return ranges;
  auto add = [&](Value *pointer, Value *length, bool writes) {
    if (interesting_pointer(pointer, interest))
      ranges.push_back({pointer, length, writes, ends_block(*call)});
  };
  if (auto *memory = dyn_cast<AnyMemIntrinsic>(&instruction)) {
    if (auto *constant = dyn_cast<ConstantInt>(memory->getLength()); constant && constant->isZero())
      return ranges;
    if (small_memset(instruction, interest))
      return ranges;
    add(memory->getDest(), memory->getLength(), true);
    if (auto *transfer = dyn_cast<AnyMemTransferInst>(memory))
      add(transfer->getSource(), transfer->getLength(), false);
    return ranges;
  }
  auto add_known = [&](const RangeAccess &range) {
    auto *length = cast<ConstantInt>(range.length);
    if (!length->isZero() && interesting_pointer(range.pointer, interest))
      ranges.push_back(range);
  };
  if (call->isInlineAsm()) {
    add_operands(*call, add_known);
    return ranges;
  }
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(call)) {
    for_each(x86_ranges(*intrinsic), add_known);
    return ranges;
  }
  add_copied_arguments(*call, add_known);
  std::optional<LibFunc> function = library_function(instruction, library);
  if (!function)
    return ranges;
  switch (*function) {
  case LibFunc_memcpy:
  case LibFunc_memmove:
  case LibFunc_mempcpy:
  case LibFunc_memcpy_chk:
  case LibFunc_memmove_chk:
    add(call->getArgOperand(0), call->getArgOperand(2), true);
    add(call->getArgOperand(1), call->getArgOperand(2), false);
    break;
  case LibFunc_memset:
  case LibFunc_memset_chk: add(call->getArgOperand(0), call->getArgOperand(2), true); break;
  default: break;
  }
  return ranges;
}

std::optional<RangeAccess> interesting_io(CallBase &call, Interest interest) {
  std::optional<RangeAccess> range = io_range(call);
  if (!range || excluded(call) || !interesting_pointer(range->pointer, interest))
    return std::nullopt;
  return range;
}

std::optional<VectorAccess> interesting_vector(CallBase &call) {
  return excluded(call) ? std::nullopt : io_vector(call);
}

SmallVector<StringAccess, 2>
interesting_strings(Instruction &instruction, const TargetLibraryInfo &library, Interest interest) {
  SmallVector<StringAccess, 2> strings;
  std::optional<LibFunc> function = library_function(instruction, library);
  if (!function || excluded(instruction))
    return strings;
  auto *call = cast<CallBase>(&instruction);
  if (ends_block(*call)) // what it wrote is known only behind it
    return strings;
  auto argument = [&](unsigned i) { return call->getArgOperand(i); };
  auto add = [&](Value *string, Value *limit, bool writes) {
    if (interesting_pointer(string, interest))
      strings.push_back({string, nullptr, limit, writes, true});
  };
  auto compare = [&](Value *limit, bool stops_at_zero) {
    if (interesting_pointer(argument(0), interest) || interesting_pointer(argument(1), interest))
      strings.push_back({argument(0), argument(1), limit, false, stops_at_zero});
  };
  switch (*function) {
  case LibFunc_strlen:
    add(argument(0), nullptr, false);
    if (!strings.empty())
      strings.back().length = call;
    break;
  case LibFunc_strnlen: add(argument(0), argument(1), false); break;
  case LibFunc_fgets:
  case LibFunc_fgets_unlocked: add(argument(0), argument(1), true); break;
  case LibFunc_puts:
  case LibFunc_fputs:
  case LibFunc_fputs_unlocked: add(argument(0), nullptr, false); break;
  case LibFunc_strcpy:
  case LibFunc_stpcpy:
  case LibFunc_strcpy_chk:
  case LibFunc_stpcpy_chk:
    add(argument(0), nullptr, true);
    add(argument(1), nullptr, false);
    break;
  case LibFunc_strncpy:
  case LibFunc_strncpy_chk:
    add(argument(0), argument(2), true); // up to the zero; the padding is not counted
    add(argument(1), argument(2), false);
    break;
  case LibFunc_strcmp: compare(end_of_constant(argument(0), argument(1)), true); break;
  case LibFunc_strncmp: compare(argument(2), true); break;
  case LibFunc_memcmp:
  case LibFunc_bcmp: compare(argument(2), false); break;
  default: break;
  }
  return strings;
}

std::optional<MaskedAccess> interesting_masked(Instruction &instruction, Interest interest) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call || excluded(instruction))
    return std::nullopt;
  unsigned pointer = 0, mask = 0;
  bool writes = false, dense = false;
  switch (call->getIntrinsicID()) {
  case Intrinsic::masked_load:
  case Intrinsic::masked_gather: pointer = 0, mask = 1; break;
  case Intrinsic::masked_expandload: pointer = 0, mask = 1, dense = true; break;
  case Intrinsic::masked_store:
  case Intrinsic::masked_scatter: pointer = 1, mask = 2, writes = true; break;
  case Intrinsic::masked_compressstore: pointer = 1, mask = 2, writes = dense = true; break;
  default:
    std::optional<MaskedAccess> access = x86_masked(*call);
    return access && interesting_pointer(access->pointer, interest) ? access : std::nullopt;
  }
  Value *data = writes ? call->getArgOperand(0) : static_cast<Value *>(call);
  auto *vector = dyn_cast<FixedVectorType>(data->getType());
  if (!vector)
    return std::nullopt; // scalable vectors do not exist on x86-64
  Value *address = call->getArgOperand(pointer);
  if (!address->getType()->isVectorTy() && !interesting_pointer(address, interest))
    return std::nullopt;
  return MaskedAccess{
      address, call->getArgOperand(mask), bytes_of(instruction, vector->getElementType()), writes,
      dense,   vector->getNumElements()};
}

bool is_barrier(const Instruction &instruction) {
  auto *call = dyn_cast<CallBase>(&instruction);
  if (!call)
    return false;
  if (isa<MemIntrinsic>(call) || isa<DbgInfoIntrinsic>(call))
    return false;
  return !(call->hasFnAttr(Attribute::NoFree) && call->hasFnAttr(Attribute::WillReturn) &&
           call->doesNotThrow() && call->hasFnAttr(Attribute::NoSync));
}

bool interesting(const Function &function) {
  if (function.isDeclaration() ||
      function.hasAvailableExternallyLinkage()) // its real body is elsewhere
    return false;
  if (function.hasFnAttribute(Attribute::Naked)) // no frame to work in
    return false;
  if (function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation)) // asked
    return false;
  if (function.getName().starts_with("__assay_")) // our own
    return false;
  for (const GlobalIFunc &ifunc : function.getParent()->ifuncs()) // runs before relocation
    if (ifunc.getResolverFunction() == &function)
      return false;
  return true;
}

} // namespace assay::compiler
