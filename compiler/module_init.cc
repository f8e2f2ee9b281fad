// Once a linked module and not once a translation unit: everything here is link-once. The
// initializer runs before all others (priority 1), and may run twice: the runtime takes it so. The
// destructor runs behind all others.

#include "compiler/module_init.h"

#include "abi/sites.h"
#include "abi/version.h"
#include "compiler/counting.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace assay::compiler {
namespace {

GlobalVariable *external(Module &module, Type *type, StringRef name) {
  return new GlobalVariable(module, type, true, GlobalValue::ExternalLinkage, nullptr, name);
}

Constant *section_bound(Module &module, StringRef name) {
  if (GlobalVariable *known = module.getGlobalVariable(name, true))
    return known;
  GlobalVariable *bound = external(module, Type::getInt8Ty(module.getContext()), name);
  bound->setVisibility(GlobalValue::HiddenVisibility);
  return bound;
}

void add_version_reference(Module &module) {
  GlobalVariable *version =
      external(module, Type::getInt32Ty(module.getContext()), ASSAY_STRING(ASSAY_ABI_SYMBOL));
  auto *reference =
      new GlobalVariable(module, version->getType(), true, GlobalValue::LinkOnceODRLinkage, version,
                         "__assay_version_reference");
  link_once(module, *reference);
  appendToCompilerUsed(module, {reference});
}

// A function of the linked module that calls a hook with its SITES section.
Function *add_caller(Module &module, StringRef name, StringRef callee) {
  LLVMContext &context = module.getContext();
  auto *function = Function::Create(FunctionType::get(Type::getVoidTy(context), false),
                                    GlobalValue::LinkOnceODRLinkage, name, module);
  link_once(module, *function);
  function->setDoesNotThrow();
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  Constant *begin = section_bound(module, "__start_" ASSAY_SITES_SECTION);
  Type *word = builder.getInt64Ty();
  Value *size = builder.CreateSub(
      builder.CreatePtrToInt(section_bound(module, "__stop_" ASSAY_SITES_SECTION), word),
      builder.CreatePtrToInt(begin, word));
  builder.CreateCall(hook(module, callee), {begin, size});
  builder.CreateRetVoid();
  return function;
}

void add_default_dir(Module &module, StringRef dir) {
  Constant *text = ConstantDataArray::getString(module.getContext(), dir);
  auto *variable = new GlobalVariable(module, text->getType(), true, GlobalValue::WeakODRLinkage,
                                      text, "__assay_default_dir");
  appendToCompilerUsed(module, {variable});
}

} // namespace

void link_once(Module &module, GlobalObject &global) {
  global.setLinkage(GlobalValue::LinkOnceODRLinkage);
  global.setVisibility(GlobalValue::HiddenVisibility);
  global.setComdat(module.getOrInsertComdat(global.getName()));
}

void add_module_init(Module &module, StringRef dir) {
  add_version_reference(module);
  Function *begin = add_caller(module, "__assay_module_ctor", "__assay_module_init");
  appendToGlobalCtors(module, begin, 1, begin);
  Function *end = add_caller(module, "__assay_module_dtor", "__assay_module_end");
  appendToGlobalDtors(module, end, 1, end);
  if (!dir.empty())
    add_default_dir(module, dir);
}

} // namespace assay::compiler
