// What the pass knows of a tool: how it changes a module and its functions.
#pragma once

#include <memory>

#include "llvm/IR/Function.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/PassManager.h"

namespace assay::compiler {

// What a tool keeps from one function of a module to the next.
struct ModuleState {
  virtual ~ModuleState() = default;
};

struct ToolRequest {
  uint32_t mode = 0;  // of abi/sites.h: what the units of a program must agree on, and more
  bool naive = false; // one update an access, as written: the oracle for every optimisation
  bool exact = false; // atomic updates: none is lost where threads share a line
  std::shared_ptr<ModuleState> state; // the tool's own, of the module at hand
};

// One for each line of abi/tools.def, in the tool's own file. Tools run on a function in the order of tools.def: each
// sees what those before have added, whose calls of hooks are no accesses.
struct ToolPass {
  const char *name;
  // Before anything: what to do before and behind passes of clang's.
  void (*follow)(llvm::PassInstrumentationCallbacks &passes) = [](auto &) {};
  // Names that a tool adds to a program begin with __assay_NAME_, so that other tools know its
  // hooks (abi/hooks.def, called by hook() in compiler/counting.h). A pass first collects all
  // accesses of the function (interesting() in compiler/access.h, CalledAccesses for ranges,
  // strings and masks), then inserts, each piece of code after its access; loads and stores of its
  // own are marked by ours(). At the start of the pipeline, on the code as clang has made it.
  void (*tag)(llvm::Module &module) = [](auto &) {};
  // Behind the first simplification, where it optimises: variables are values now, and nothing was
  // inlined but what must be.
  void (*simplified)(llvm::Module &module) = [](auto &) {};
  // Before the functions of a module, and behind them.
  void (*prepare)(llvm::Module &module, ToolRequest &request) = [](auto &, auto &) {};
  // Before any tool instruments the function: may change its code.
  void (*reshape)(llvm::Function &function, const ToolRequest &request) = [](auto &, auto &) {};
  void (*finish)(llvm::Module &module, const ToolRequest &request) = [](auto &, auto &) {};
  void (*instrument)(llvm::Function &function, const ToolRequest &request,
                     llvm::FunctionAnalysisManager &analyses);
};

} // namespace assay::compiler
