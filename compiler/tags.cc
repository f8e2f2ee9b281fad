// Where a type comes from, best first:
//   !alloc_token      clang's -fsanitize=alloc-token: `new T`, `(T *)malloc(n)`, malloc(sizeof(T)),
//                     std::allocator. Only the metadata is wanted: taking the function attribute
//                     away keeps that pass from renaming the calls.
//   !heapallocsite    debug info of `new` (with -g), where the token is missing because the user
//                     asked for another sanitizer
//   first typed use   the struct type of a getelementptr on the result
//
// A tag is an attribute of the call, "assay-type"="SIZE LAYOUT NAME". Metadata was refused: where a
// function is inlined into one that catches or cleans up, its calls become invokes, and these keep
// attributes but not metadata. A malloc whose block is then set to zeros becomes a calloc, another
// call at the same place in the source: so places are kept as well.

#include "compiler/tags.h"

#include "llvm/Analysis/MemoryBuiltins.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr char kTag[] = "assay-type";
constexpr char kPlaces[] = "assay.allocations"; // {function, line and column, tag}

// The function, and line and column in it; null where the call has no place.
std::pair<DISubprogram *, uint64_t> place_of(const CallBase &call) {
  const DILocation *where = call.getDebugLoc();
  if (!where || !where->getLine())
    return {};
  return {where->getScope()->getSubprogram(),
          (uint64_t)where->getLine() << 32 | where->getColumn()};
}

// The tag of the allocation that stood at this one's place.
StringRef tag_at_place(const CallBase &call) {
  const NamedMDNode *all = call.getModule()->getNamedMetadata(kPlaces);
  const Function *callee = call.getCalledFunction();
  if (!all || !callee || callee->getName() != "calloc")
    return {};
  const auto [function, place] = place_of(call);
  for (const MDNode *node : all->operands())
    if (node->getOperand(0) == function &&
        mdconst::extract<ConstantInt>(node->getOperand(1))->getZExtValue() == place)
      return cast<MDString>(node->getOperand(2))->getString();
  return {};
}

StructType *struct_named(Module &module, StringRef name) {
  for (const char *prefix : {"struct.", "class.", "union."})
    if (auto *type = StructType::getTypeByName(module.getContext(), (Twine(prefix) + name).str()))
      return type->isSized() ? type : nullptr;
  return nullptr;
}

uint64_t layout_hash(const DataLayout &layout, StructType *type) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  const StructLayout *members = layout.getStructLayout(type);
  for (unsigned i = 0; i < type->getNumElements(); i++)
    hash = (hash ^ members->getElementOffset(i).getFixedValue()) * 0x100000001b3ULL;
  return hash;
}

uint64_t scalar_size(StringRef name) {
  if (name.ends_with("*"))
    return 8;
  static const std::pair<const char *, uint64_t> kScalars[] = {
      {"char", 1},        {"signed char", 1},   {"unsigned char", 1},
      {"bool", 1},        {"short", 2},         {"unsigned short", 2},
      {"int", 4},         {"unsigned int", 4},  {"float", 4},
      {"long", 8},        {"unsigned long", 8}, {"double", 8},
      {"wchar_t", 4},     {"long long", 8},     {"unsigned long long", 8},
      {"long double", 16}};
  for (auto &[scalar, size] : kScalars)
    if (name == scalar)
      return size;
  return 0;
}

void tag(CallBase &call, StringRef name) {
  Module &module = *call.getModule();
  StringRef plain = name;
  for (StringRef keyword : {"struct ", "class ", "union ", "enum "})
    plain.consume_front(keyword);
  uint64_t size = scalar_size(plain), layout = 0;
  if (StructType *type = struct_named(module, plain)) {
    size = module.getDataLayout().getTypeAllocSize(type).getFixedValue();
    layout = layout_hash(module.getDataLayout(), type);
  }
  const std::string text = (Twine(size) + " " + Twine(layout) + " " + plain).str();
  call.addFnAttr(Attribute::get(module.getContext(), kTag, text));
  if (const auto [function, place] = place_of(call); function)
    module.getOrInsertNamedMetadata(kPlaces)->addOperand(MDNode::get(
        module.getContext(),
        {function,
         ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(module.getContext()), place)),
         MDString::get(module.getContext(), text)}));
}

StringRef token_type(const CallBase &call) {
  MDNode *token = call.getMetadata(LLVMContext::MD_alloc_token);
  if (!token || token->getNumOperands() == 0)
    return {};
  auto *name = dyn_cast<MDString>(token->getOperand(0));
  return name ? name->getString() : StringRef();
}

StringRef debug_info_type(const CallBase &call) {
  auto *type = dyn_cast_or_null<DIType>(call.getMetadata("heapallocsite"));
  return type ? type->getName() : StringRef();
}

// At -O0 the result is first stored to a variable, so only direct uses count here.
StringRef first_typed_use(const CallBase &call) {
  for (const User *user : call.users())
    if (auto *gep = dyn_cast<GetElementPtrInst>(user); gep && gep->getPointerOperand() == &call)
      if (auto *type = dyn_cast<StructType>(gep->getSourceElementType()); type && type->hasName())
        return type->getName().split('.').second;
  return {};
}

enum class Kind {
  ALLOCATES,
  ALLOCATES_AT,
  COPIES,
  RESIZES,
  FREES
}; // as abi/interposed.def has them

constexpr struct {
  StringLiteral name;
  Kind kind;
} kFunctions[] = {
#define ASSAY_INTERPOSED(name)
#define ASSAY_INTERPOSED_DYNAMIC(name)
#define ASSAY_INTERPOSED_ALLOCATION(name, kind) {#name, Kind::kind},
#define ASSAY_INTERPOSED_NEW(name, parameters, arguments) {#name, Kind::ALLOCATES},
#define ASSAY_INTERPOSED_DELETE(name, parameters, arguments) {#name, Kind::FREES},
#include "abi/interposed.def"
};

// By the callee's attributes, or where it has none (at -O0) by its name.
bool is_of_kind(const CallBase &call, AllocFnKind attribute, Kind kind) {
  const Function *callee = call.getCalledFunction();
  if (!callee)
    return false;
  if (callee->hasFnAttribute(Attribute::AllocKind))
    return (callee->getFnAttribute(Attribute::AllocKind).getAllocKind() & attribute) !=
           AllocFnKind::Unknown;
  return any_of(kFunctions, [&](const auto &function) {
    return function.kind == kind && function.name == callee->getName();
  });
}

} // namespace

bool is_allocation(const CallBase &call) {
  return is_of_kind(call, AllocFnKind::Alloc, Kind::ALLOCATES);
}

bool is_free(const CallBase &call) {
  return is_of_kind(call, AllocFnKind::Free, Kind::FREES);
}

void tag_allocations(Module &module) {
  for (Function &function : module) {
    function.removeFnAttr(Attribute::SanitizeAllocToken);
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallBase>(&instruction);
      if (!call)
        continue;
      StringRef name = token_type(*call);
      if (name.empty())
        name = debug_info_type(*call);
      if (name.empty() && is_allocation(*call))
        name = first_typed_use(*call);
      if (!name.empty())
        tag(*call, name);
    }
  }
}

std::optional<TaggedType> tagged_type(const CallBase &call) {
  const Attribute attribute = call.getFnAttr(kTag); // of the call; no function has it
  StringRef text = attribute.isValid() ? attribute.getValueAsString() : tag_at_place(call);
  if (text.empty())
    return std::nullopt;
  TaggedType type;
  if (text.consumeInteger(10, type.size) || !text.consume_front(" ") ||
      text.consumeInteger(10, type.layout) || !text.consume_front(" "))
    return std::nullopt; // somebody else's
  type.name = text;
  return type;
}

void remove_places(Module &module) {
  if (NamedMDNode *all = module.getNamedMetadata(kPlaces))
    all->eraseFromParent();
}

} // namespace assay::compiler
