// Which words does a function touch? Its accesses are collected block by block, before anything is
// put in. Accesses of one basic block from one address share checks, and a check spares what can
// only follow it without a call between (CheckPlacement); the naive form checks each access by
// itself, and marks the same words. Counters (-fassay-objects=counters) need no check: the accesses
// of a basic block to the same words are one addition.
//
// Local variables are left out: whoever asks for them (-fassay-objects=stack) gets each variable in
// memory as an object that lives from the function's entry to its return.
//
// Source: cache-fragmentation.txt, "Instrumentation".

#include "abi/sites.h"
#include "abi/word_encoding.h"
#include "compiler/access.h"
#include "compiler/access_groups.h"
#include "compiler/called_accesses.h"
#include "compiler/check_placement.h"
#include "compiler/objects_locals.h"
#include "compiler/tool_pass.h"
#include "compiler/word_touches.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler::objects {
namespace {

// The longest access that is checked inline: its words need two checks of eight.
constexpr uint64_t kMaxInlineBytes = 64;

class ObjectsInstrumenter {
public:
  ObjectsInstrumenter(Function &function, const ToolRequest &options,
                      const TargetLibraryInfo &library, ScalarEvolution &evolution)
      : function_(function), layout_(function.getDataLayout()), options_(options),
        interest_{!(options.mode & ASSAY_WORDS_NO_GLOBALS),
                  (options.mode & ASSAY_WORDS_STACK) != 0},
        library_(library),
        checks_(evolution, {.line_bytes = assay_word_encoding(options.mode).unit_bytes,
                            .naive = options.naive,
                            .across_blocks = !options.naive,
                            .reads_several = true}),
        groups_(layout_, ASSAY_WORD_BYTES, options.naive) {}

  void run() {
    LocalVariables locals(function_);
    if (interest_.stack)
      locals.find();
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function_))
      collect(*block);
    WordTouches words(function_, options_);
    // Backwards: to split a block takes as long as what lies behind.
    for (auto &[instruction, range] : reverse(called_.ranges))
      words.mark(*instruction, range);
    for (auto &[instruction, vector] : reverse(called_.vectors))
      words.mark(*instruction, vector);
    for (auto &[instruction, string] : reverse(called_.strings))
      words.mark(*instruction, string);
    for (auto &[instruction, masked] : reverse(called_.masked))
      words.mark(*instruction, masked);
    for (const Check &check : reverse(checks_.all()))
      words.mark(check);
    for (const AccessCluster &cluster : reverse(groups_.clusters()))
      for (const AccessGroup &group : cluster)
        words.count(group);
    locals.insert();
  }

private:
  bool counts() const { return (options_.mode & ASSAY_WORDS_COUNTERS) != 0; }

  void collect(BasicBlock &block) {
    checks_.begin(block);
    for (Instruction &instruction : block) {
      if (takes_time(instruction))
        checks_.pause();
      if (counts() && is_barrier(instruction))
        groups_.close();
      if (std::optional<Access> access = interesting(instruction, interest_))
        add(instruction, *access);
      size_t known = called_.ranges.size();
      called_.collect(instruction, library_, interest_);
      for (; known < called_.ranges.size() && is_short(called_.ranges.back().second);
           called_.ranges.pop_back())
        add(instruction, as_access(called_.ranges.back().second));
    }
    checks_.end();
    groups_.close();
  }

  bool is_short(const RangeAccess &range) const {
    auto *length = dyn_cast_or_null<ConstantInt>(range.length);
    return length && !range.before && !length->isZero() && length->getValue().ule(kMaxInlineBytes);
  }

  Access as_access(const RangeAccess &range) const {
    return {range.pointer, cast<ConstantInt>(range.length)->getZExtValue(),
            range.pointer->getPointerAlignment(layout_), !range.writes, range.writes};
  }

  void add(Instruction &instruction, const Access &access) {
    if (access.bytes > kMaxInlineBytes) {
      Type *word = Type::getInt64Ty(function_.getContext());
      called_.ranges.push_back(
          {&instruction, {access.pointer, ConstantInt::get(word, access.bytes), access.writes}});
    } else if (counts()) {
      groups_.add(instruction, access);
    } else {
      checks_.add(instruction, access);
    }
  }

  Function &function_;
  const DataLayout &layout_;
  const ToolRequest &options_;
  const Interest interest_;
  const TargetLibraryInfo &library_;
  CheckPlacement checks_;
  AccessGroups groups_; // where accesses are counted
  CalledAccesses called_;
};

} // namespace

extern const ToolPass pass;
const ToolPass pass = {
    .name = "objects",
    .instrument =
        [](Function &function, const ToolRequest &request, FunctionAnalysisManager &analyses) {
          ObjectsInstrumenter(function, request,
                              analyses.getResult<TargetLibraryAnalysis>(function),
                              analyses.getResult<ScalarEvolutionAnalysis>(function))
              .run();
        },
};

} // namespace assay::compiler::objects
