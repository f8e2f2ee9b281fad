// The pass plugin: tags at the start of clang's pipeline, instrumentation at its end.
//
// Why the end: what the optimiser removed is not executed and must not be counted, and
// instrumenting early blocks the optimiser (2 to 3 times slower). Why tags at the start: struct
// types of addresses and the types of allocations are gone at the end.
//
// Under LTO the instrumentation happens before the link, once: the module flag `assay` says so.

#include "abi/sites.h"
#include "abi/version.h"
#include "compiler/access.h"
#include "compiler/allocations.h"
#include "compiler/heap_pass.h"
#include "compiler/module_init.h"
#include "compiler/sites.h"
#include "compiler/tags.h"
#include "compiler/workingset_pass.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SpecialCaseList.h"
#include "llvm/Support/VirtualFileSystem.h"

using namespace llvm;
using namespace assay::compiler;

namespace {

cl::opt<bool> naive("assay-naive", cl::desc("count each access by itself"));
cl::opt<bool> exact("assay-exact", cl::desc("count by atomic updates"));
cl::opt<uint32_t> counters("assay-counters", cl::desc("a sum of enum AssayCounters"));
cl::opt<uint32_t> lines("assay-lines", cl::desc("a sum of enum AssayLines"));
cl::opt<uint32_t> tools("assay-tools", cl::desc("a set of tools, bits of abi/tools.def"),
                        cl::init(1));
cl::opt<std::string> dir("assay-dir", cl::desc("default place of profiles"));
cl::list<std::string> ignore_lists("assay-ignorelist",
                                   cl::desc("files of functions and sources to leave alone"));

struct TagPass : PassInfoMixin<TagPass> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    tag_allocations(module);
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

// Which tools a unit is built for.
bool wants(uint32_t bit) {
  return (tools & (1U << bit)) != 0;
}
#define ASSAY_TOOL(name, bit, question)                                                            \
  bool wants_##name() {                                                                            \
    return wants(bit);                                                                             \
  }
#include "abi/tools.def"

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
    sites.add_unit(module.getSourceFileName(), {tools, counters, lines});
    if (counters & ASSAY_COUNTERS_GLOBALS)
      align_globals(module);
    for (Function &function : module)
      if (interesting(function))
        instrument(function, functions, sites,
                   {.heap = wants_heap() && !is_ignored("heap", function),
                    .workingset = wants_workingset() && !is_ignored("workingset", function)});
    add_module_init(module, dir);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

private:
  struct Tools {
    bool heap, workingset;
  };

  static void instrument(Function &function, FunctionAnalysisManager &analyses, Sites &sites,
                         Tools wanted) {
    if (!wanted.heap && !wanted.workingset)
      return;
    auto &library = analyses.getResult<TargetLibraryAnalysis>(function);
    instrument_allocations(function, sites);
    if (wanted.heap)
      instrument_heap(function, {.naive = naive, .exact = exact, .counters = counters}, library);
    if (!wanted.workingset)
      return;
    analyses.invalidate(function, PreservedAnalyses::none()); // of code as it was
    instrument_workingset(function, {.naive = naive, .lines = lines},
                          analyses.getResult<TargetLibraryAnalysis>(function),
                          analyses.getResult<ScalarEvolutionAnalysis>(function));
  }
};

void register_passes(PassBuilder &builder) {
  builder.registerPipelineStartEPCallback(
      [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(TagPass()); });
  builder.registerOptimizerLastEPCallback(
      [](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase phase) {
        if (phase != ThinOrFullLTOPhase::ThinLTOPostLink &&
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
