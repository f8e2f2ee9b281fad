// What a function touches is collected, block by block, before anything is put in.
//
// A mark may split its block, which takes as long as what lies behind; so marks are put in
// backwards. An access of up to one line is a check, and CheckPlacement decides which checks are
// needed. What is longer, or of a length that only the run knows, is a range; the ranges of one
// instruction with one length, as of a copy, are marked together. With a clock of accesses, each
// block adds its number of accesses at its end.
//
// Refused: checks hoisted out of loops. A snapshot that ends while the loop runs would miss lines
// that are touched in every iteration (docs/decisions/014-looks.md).

#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/called_accesses.h"
#include "compiler/check_placement.h"
#include "compiler/tool_pass.h"
#include "compiler/workingset_touches.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler::workingset {
namespace {

constexpr Interest kEverything = {.globals = true, .stack = true};

class WorkingSetInstrumenter {
public:
  WorkingSetInstrumenter(Function &function, const ToolRequest &options,
                         const TargetLibraryInfo &library, ScalarEvolution &evolution)
      : function_(function), layout_(function.getDataLayout()), options_(options),
        form_(assay_line_encoding(options.mode)), library_(library),
        checks_(evolution, {form_.line_bytes, options.naive,
                            // with a clock of accesses, a snapshot ends at the end of a block
                            !options.naive && !(options.mode & ASSAY_LINES_ACCESSES)}) {}

  bool run() {
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function_))
      collect(*block);
    LineTouches marks(function_, options_);
    // Backwards: to split a block takes as long as what lies behind.
    touch_ranges(marks);
    for (auto &[instruction, vector] : reverse(called_.vectors))
      marks.mark(*instruction, vector);
    for (auto &[instruction, string] : reverse(called_.strings))
      marks.mark(*instruction, string);
    for (auto &[instruction, masked] : reverse(called_.masked))
      marks.mark(*instruction, masked);
    for (const Check &look : reverse(checks_.all()))
      marks.mark(look);
    for (auto &[end, accesses] : counts_)
      marks.tick(*end, accesses);
    return !checks_.all().empty() || !called_.empty();
  }

private:
  // What is copied, and where it goes, is of one length.
  void touch_ranges(LineTouches &marks) {
    for (ArrayRef left = called_.ranges; !left.empty();) {
      SmallVector<RangeAccess, 2> same;
      for (auto &[instruction, range] : reverse(left))
        if (instruction == left.back().first && range.length == left.back().second.length)
          same.push_back(range);
        else
          break;
      marks.mark(*left.back().first, same);
      left = left.drop_back(same.size());
    }
  }

  void collect(BasicBlock &block) {
    checks_.begin(block);
    uint32_t accesses = 0;
    for (Instruction &instruction : block) {
      if (takes_time(instruction))
        checks_.pause();
      if (std::optional<Access> access = interesting(instruction, kEverything)) {
        add(instruction, *access);
        accesses++;
      }
      size_t known = called_.ranges.size();
      accesses += called_.collect(instruction, library_, kEverything);
      for (; known < called_.ranges.size() && is_short(called_.ranges.back().second);
           called_.ranges.pop_back())
        add(instruction, as_access(called_.ranges.back().second));
    }
    checks_.end();
    if (accesses && options_.mode & ASSAY_LINES_ACCESSES)
      counts_.push_back({block.getTerminator(), accesses});
  }

  bool is_short(const RangeAccess &range) const {
    auto *length = dyn_cast_or_null<ConstantInt>(range.length);
    return length && !range.before && !length->isZero() && length->getValue().ule(form_.line_bytes);
  }

  Access as_access(const RangeAccess &range) const {
    return {range.pointer, cast<ConstantInt>(range.length)->getZExtValue(),
            range.pointer->getPointerAlignment(layout_), !range.writes, range.writes};
  }

  void add(Instruction &instruction, const Access &access) {
    if (access.bytes <= form_.line_bytes) {
      checks_.add(instruction, access);
      return;
    }
    Type *word = Type::getInt64Ty(function_.getContext());
    called_.ranges.push_back(
        {&instruction, {access.pointer, ConstantInt::get(word, access.bytes), access.writes}});
  }

  Function &function_;
  const DataLayout &layout_;
  const ToolRequest &options_;
  const AssayLineEncoding form_;
  const TargetLibraryInfo &library_;
  CheckPlacement checks_;
  CalledAccesses called_;
  SmallVector<std::pair<Instruction *, uint32_t>, 16>
      counts_; // before a block's end, accesses in it
};

} // namespace

extern const ToolPass pass;
const ToolPass pass = {
    .name = "workingset",
    .instrument =
        [](Function &function, const ToolRequest &request, FunctionAnalysisManager &analyses) {
          WorkingSetInstrumenter(function, request,
                                 analyses.getResult<TargetLibraryAnalysis>(function),
                                 analyses.getResult<ScalarEvolutionAnalysis>(function))
              .run();
        },
};

} // namespace assay::compiler::workingset
