// Counts the accesses to fields: not each by itself, but how often each stretch of code is executed that has such accesses. What
// a stretch accesses is known here, and written down (abi/fields.h); the counts of fields follow from both.
//
// A stretch is a piece of a basic block that is executed as a whole: it ends at calls that may not come back. So a count is
// exact wherever the program leaves a function, and one addition serves all fields of the stretch. Each thread has counters of
// its own: no update is lost, none is atomic.
//
// Naive: each access is a stretch of its own; the oracle.
//
// Source: cache-fragmentation.txt, "Struct field access patterns". The counter at each address computation that it proposes
// counts too much (an address is not an access) and too little (an address may be used many times): -fassay-fields=gep.

#include "abi/fields.h"
#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/counting.h"
#include "compiler/member_tags.h"
#include "compiler/tool_pass.h"
#include "compiler/unit_fields.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler::fields {
namespace {

constexpr Interest kEverything = {.globals = true, .stack = true};

struct Fields : ModuleState {
  explicit Fields(Module &module) : tags(module), unit(module) {}
  MemberTags tags;
  UnitFields unit;
};

// A piece of a basic block with accesses to fields.
struct Stretch {
  Instruction *last = nullptr; // of the accesses
  uint32_t line = 0;
  SmallVector<FieldItem, 4> items;
  SmallVector<Value *, ASSAY_MAX_BASES> bases;
};

class FieldsInstrumenter {
public:
  FieldsInstrumenter(Function &function, const ToolRequest &request, Fields &fields)
      : function_(function), layout_(function.getDataLayout()), request_(request), fields_(fields) {
  }

  void run() {
    fields_.tags.begin(function_);
    for (BasicBlock &block : function_)
      collect(block);
    for (size_t i = stretches_.size();
         i-- > 0;) // to split a block takes as long as what lies behind
      count(stretches_[i]);
  }

private:
  void collect(BasicBlock &block) {
    for (Instruction &instruction : block) {
      if (may_not_return(instruction))
        close();
      if (std::optional<Access> access = interesting(instruction, kEverything))
        add(instruction, *access);
      else if (auto *memory = dyn_cast<AnyMemIntrinsic>(&instruction))
        add_copy(*memory);
      if (request_.naive)
        close();
    }
    close();
  }

  static bool may_not_return(const Instruction &instruction) {
    auto *call = dyn_cast<CallBase>(&instruction);
    return call && !isa<DbgInfoIntrinsic, MemIntrinsic>(call) &&
           !(call->hasFnAttr(Attribute::WillReturn) && call->doesNotThrow());
  }

  void add(Instruction &instruction, const Access &access) {
    MemberAccess member = fields_.tags.find(instruction, access);
    if (!member.record && !member.is_lost)
      return;
    add(instruction, member, access.pointer, access.reads, access.writes, 0);
  }

  void add_copy(AnyMemIntrinsic &memory) {
    MemberCopy copy = fields_.tags.find_copy(memory);
    auto *length = dyn_cast<ConstantInt>(memory.getLength());
    if (!length || !copy.bytes)
      return;
    uint64_t times = length->getZExtValue() / copy.bytes;
    const bool copies = isa<AnyMemTransferInst>(memory);
    if (copy.read.record)
      add(memory, copy.read, cast<AnyMemTransferInst>(memory).getSource(), times, 0, times);
    if (copy.written.record)
      add(memory, copy.written, memory.getDest(), 0, times, copies ? times : 0);
  }

  void add(Instruction &instruction, const MemberAccess &member, Value *pointer, uint64_t reads,
           uint64_t writes, uint64_t copied) {
    open_.last = &instruction;
    if (!open_.line && instruction.getDebugLoc())
      open_.line = instruction.getDebugLoc().getLine();
    const uint32_t base = member.record ? number_of_base(pointer) : 0;
    for (FieldItem &item : open_.items)
      if (item.record == member.record && item.leaves.first == member.leaves.first &&
          item.leaves.last == member.leaves.last && item.base == base) {
        item.reads += reads, item.writes += writes, item.copied += copied;
        return;
      }
    open_.items.push_back({member.record, member.leaves, reads, writes, copied, base});
  }

  uint32_t number_of_base(Value *pointer) {
    APInt offset(64, 0);
    Value *base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
    auto known = find(open_.bases, base);
    if (known == open_.bases.end() && open_.bases.size() < ASSAY_MAX_BASES) {
      open_.bases.push_back(base);
      return (uint32_t)open_.bases.size() - 1;
    }
    return (uint32_t)(known - open_.bases.begin());
  }

  void close() {
    if (!open_.items.empty())
      stretches_.push_back(std::move(open_));
    open_ = Stretch();
  }

  void count(const Stretch &stretch) {
    uint64_t number = fields_.unit.add(function_, stretch.line, stretch.items);
    BuilderAfter builder(*stretch.last);
    Type *word = builder.getInt64Ty();
    Value *block = ours(builder.CreateLoad(word, thread()));
    Value *base = ours(builder.CreateLoad(word, fields_.unit.base()));
    Value *counter = builder.CreateIntToPtr(
        builder.CreateAdd(builder.CreateAdd(block, base), builder.getInt64(number * 8)),
        builder.getPtrTy());
    Value *sum = builder.CreateAdd(ours(builder.CreateLoad(word, counter)), builder.getInt64(1));
    ours(builder.CreateStore(sum, counter));
  }

  // Where this thread's distance stands, read once at the function's entry.
  Value *thread() {
    if (!thread_) {
      IRBuilder<> builder(&*function_.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
      Constant *variable =
          thread_local_hook(*function_.getParent(), "__assay_fields_thread", builder.getPtrTy());
      thread_ =
          ours(builder.CreateLoad(builder.getPtrTy(), builder.CreateThreadLocalAddress(variable)));
    }
    return thread_;
  }

  Function &function_;
  Value *thread_ = nullptr;
  const DataLayout &layout_;
  const ToolRequest &request_;
  Fields &fields_;
  Stretch open_;
  SmallVector<Stretch, 16> stretches_;
};

} // namespace

extern const ToolPass pass;
const ToolPass pass = {
    .name = "fields",
    .tag = tag_members,
    .prepare = [](Module &module,
                  ToolRequest &request) { request.state = std::make_shared<Fields>(module); },
    .finish =
        [](Module &module, const ToolRequest &request) {
          static_cast<Fields &>(*request.state).unit.finish();
          MemberTags::remove(module);
        },
    .instrument =
        [](Function &function, const ToolRequest &request, FunctionAnalysisManager &) {
          FieldsInstrumenter(function, request, static_cast<Fields &>(*request.state)).run();
        },
};

} // namespace assay::compiler::fields
