// The pass plugin: tags at the start of clang's pipeline, instrumentation at its end.
//
// Why the end: what the optimiser removed is not executed and must not be counted, and
// instrumenting early blocks the optimiser (2 to 3 times slower). Why tags at the start: struct
// types of addresses and the types of allocations are gone at the end.
//
// Under LTO the instrumentation happens before the link, once: the module flag `assay` says so.
// ThinLTO leaves loops as they are until the link, where our counting would keep it from
// vectorising them: so they are optimised before it, as without LTO.

#include "abi/tools.h"
#include "abi/version.h"
#include "compiler/access.h"
#include "compiler/allocations.h"
#include "compiler/frame_slots.h"
#include "compiler/module_init.h"
#include "compiler/sites.h"
#include "compiler/tags.h"
#include "compiler/tool_pass.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SpecialCaseList.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace assay::compiler {
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  namespace name {                                                                                 \
  extern const ToolPass pass;                                                                      \
  }
#include "abi/tools.def"
} // namespace assay::compiler

using namespace llvm;
using namespace assay::compiler;

namespace {

cl::opt<bool> naive("assay-naive", cl::desc("count each access by itself"));
cl::opt<bool> exact("assay-exact", cl::desc("count by atomic updates"));
cl::opt<bool> no_allocations("assay-no-allocations",
                             cl::desc("no tool asks for the types of allocated objects"));
cl::opt<uint32_t> tools("assay-tools", cl::desc("a set of tools, bits of abi/tools.def"),
                        cl::init(ASSAY_DEFAULT_TOOLS));
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  cl::opt<uint32_t> name##_mode("assay-" #name, cl::desc("mode of the tool, bits of "              \
                                                         "abi/sites.h"));
#include "abi/tools.def"
cl::opt<std::string> dir("assay-dir", cl::desc("default place of profiles"));
cl::list<std::string> ignore_lists("assay-ignorelist",
                                   cl::desc("files of functions and sources to leave alone"));

struct TagPass : PassInfoMixin<TagPass> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    if (!no_allocations)
      tag_allocations(module);
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  if (tools & ASSAY_TOOL_##name)                                                                   \
    name::pass.tag(module);
#include "abi/tools.def"
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

struct SimplifiedPass : PassInfoMixin<SimplifiedPass> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  if (tools & ASSAY_TOOL_##name)                                                                   \
    name::pass.simplified(module);
#include "abi/tools.def"
    return PreservedAnalyses::none();
  }
};

struct WantedTool {
  const ToolPass *pass;
  ToolRequest request;
};

// The tools that the unit is built for.
SmallVector<WantedTool> wanted_tools() {
  SmallVector<WantedTool> wanted;
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  if (tools & ASSAY_TOOL_##name)                                                                   \
    wanted.push_back(                                                                              \
        {&name::pass, {.mode = name##_mode, .naive = naive, .exact = exact, .state = nullptr}});
#include "abi/tools.def"
  return wanted;
}

// The mode of each tool, by bit.
SmallVector<uint32_t> tool_modes() {
  SmallVector<uint32_t> modes;
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  if (modes.size() <= bit)                                                                         \
    modes.resize(bit + 1);                                                                         \
  modes[bit] = name##_mode;
#include "abi/tools.def"
  return modes;
}

class InstrumentPass : public PassInfoMixin<InstrumentPass> {
public:
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
    if (module.getModuleFlag("assay")) // instrumented before the link
      return PreservedAnalyses::all();
    module.addModuleFlag(Module::Max, "assay", ASSAY_ABI_VERSION);
    std::unique_ptr<SpecialCaseList> ignored;
    if (!ignore_lists.empty()) {
      std::string why;
      ignored = SpecialCaseList::create(ignore_lists, *vfs::getRealFileSystem(), why);
      if (!ignored) {
        module.getContext().emitError("-fassay-ignorelist: " + why);
        return PreservedAnalyses::all();
      }
    }
    auto is_ignored = [&](StringRef tool, const Function &function) {
      auto named = [&](StringRef kind, StringRef name) {
        return ignored->inSection("assay", kind, name) || ignored->inSection(tool, kind, name);
      };
      return ignored &&
             (named("src", module.getSourceFileName()) || named("fun", function.getName()));
    };
    auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    Sites sites(module);
    sites.add_unit(module.getSourceFileName(), tools, tool_modes());
    SmallVector<WantedTool> wanted = wanted_tools();
    for (WantedTool &tool : wanted)
      tool.pass->prepare(module, tool.request);
    for (Function &function : module)
      if (interesting(function)) {
        SmallVector<WantedTool> here;
        copy_if(wanted, std::back_inserter(here),
                [&](const WantedTool &tool) { return !is_ignored(tool.pass->name, function); });
        if (!here.empty())
          instrument(function, functions, sites, here);
      }
    for (const WantedTool &tool : wanted)
      tool.pass->finish(module, tool.request);
    remove_places(module);
    forget_effects(module);
    add_module_init(module, dir);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

private:
  // What counts writes memory, whatever the optimiser has found out before: under LTO, calls of a function that only
  // reads would be moved or removed, and not be counted.
  static void forget_effects(Module &module) {
    for (Function &function : module) {
      if (function.isDeclaration())
        continue;
      function.removeFnAttr(Attribute::Memory);
      for (User *user : function.users())
        if (auto *call = dyn_cast<CallBase>(user); call && call->getCalledFunction() == &function)
          call->removeFnAttr(Attribute::Memory);
    }
  }

  static void instrument(Function &function, FunctionAnalysisManager &analyses, Sites &sites,
                         ArrayRef<WantedTool> wanted) {
    if (!no_allocations)
      instrument_allocations(function, sites);
    for (const WantedTool &tool : wanted)
      tool.pass->reshape(function, tool.request);
    for (const WantedTool &tool : wanted) {
      analyses.invalidate(function, PreservedAnalyses::none()); // of the code as it was
      tool.pass->instrument(function, tool.request, analyses);
    }
    share_frame_slots(function);
  }
};

void register_passes(PassBuilder &builder) {
  if (PassInstrumentationCallbacks *passes = builder.getPassInstrumentationCallbacks()) {
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  if (tools & ASSAY_TOOL_##name)                                                                   \
    name::pass.follow(*passes);
#include "abi/tools.def"
  }
  builder.registerPipelineStartEPCallback(
      [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(TagPass()); });
  builder.registerPipelineEarlySimplificationEPCallback(
      [](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase) {
        passes.addPass(SimplifiedPass());
      });
  builder.registerOptimizerLastEPCallback(
      [&builder](ModulePassManager &passes, OptimizationLevel level, ThinOrFullLTOPhase phase) {
        if (phase == ThinOrFullLTOPhase::ThinLTOPreLink && level != OptimizationLevel::O0)
          // Comes here again at its end.
          passes.addPass(builder.buildModuleOptimizationPipeline(level, ThinOrFullLTOPhase::None));
        else if (phase != ThinOrFullLTOPhase::ThinLTOPostLink &&
                 phase != ThinOrFullLTOPhase::FullLTOPostLink)
          passes.addPass(InstrumentPass());
      });
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name == "assay-tags")
          passes.addPass(TagPass());
        else if (name == "assay-instrument")
          passes.addPass(InstrumentPass());
        else
          return false;
        return true;
      });
}

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "assay", ASSAY_STRING(ASSAY_ABI_VERSION), register_passes};
}
