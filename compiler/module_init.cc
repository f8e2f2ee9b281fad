// Once a linked module and not once a translation unit: everything here is link-once. The
// initializer runs before all others (priority 1), and may run twice: the runtime takes it so.

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

void add_version_reference(Module &module) {
  GlobalVariable *version =
      external(module, Type::getInt32Ty(module.getContext()), ASSAY_STRING(ASSAY_ABI_SYMBOL));
  auto *reference =
      new GlobalVariable(module, version->getType(), true, GlobalValue::LinkOnceODRLinkage, version,
                         "__assay_version_reference");
  link_once(module, *reference);
  appendToCompilerUsed(module, {reference});
}

void add_initializer(Module &module) {
  LLVMContext &context = module.getContext();
  Type *byte = Type::getInt8Ty(context);
  GlobalVariable *begin = external(module, byte, "__start_" ASSAY_SITES_SECTION);
  GlobalVariable *end = external(module, byte, "__stop_" ASSAY_SITES_SECTION);
  begin->setVisibility(GlobalValue::HiddenVisibility);
  end->setVisibility(GlobalValue::HiddenVisibility);
  auto *function = Function::Create(FunctionType::get(Type::getVoidTy(context), false),
                                    GlobalValue::LinkOnceODRLinkage, "__assay_module_ctor", module);
  link_once(module, *function);
  function->setDoesNotThrow();
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  Type *word = builder.getInt64Ty();
  Value *size =
      builder.CreateSub(builder.CreatePtrToInt(end, word), builder.CreatePtrToInt(begin, word));
  builder.CreateCall(hook(module, "__assay_module_init"), {begin, size});
  builder.CreateRetVoid();
  appendToGlobalCtors(module, function, 1, function);
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
  add_initializer(module);
  if (!dir.empty())
    add_default_dir(module, dir);
}

} // namespace assay::compiler
