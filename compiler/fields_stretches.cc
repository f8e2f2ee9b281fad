// In memory, a counter costs one instruction, and the function once what finds this thread's
// counters. In loops without calls, counters are kept in registers, and added when the loop is
// left. Which pieces of code are counted at all, fields_flow.cc says.
//
// With windows, code asks a variable of the runtime whether stretches are to be reported
// (fields_reports.cc says where). That is all: counters are the same while a thread samples, and a
// loop without calls may run for hours and still be sampled.
//
// Refused: negative counters as the sign to report, which saves the question but must count each stretch, and must
// look again and again for where to; in loops a countdown for each counter, which made short loops three times slower.

#include "compiler/fields_stretches.h"

#include "abi/fields.h"
#include "compiler/counting.h"
#include "compiler/fields_reports.h"
#include "compiler/places.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr size_t kMaxInRegisters = 6;

} // namespace

bool StretchCounters::is_quiet(Loop *loop) {
  auto [known, is_new] = quiet_.try_emplace(loop, false);
  if (!is_new)
    return known->second;
  bool quiet = loop->getLoopPreheader() && loop->hasDedicatedExits() &&
               none_of(loop->blocks(), [](BasicBlock *block) {
                 return any_of(*block, may_not_return) || isa<CallBrInst>(block->getTerminator());
               });
  return quiet_[loop] = quiet;
}

// The outermost loop around the block that calls nothing.
Loop *StretchCounters::quiet_loop_of(BasicBlock *block) {
  Loop *found = nullptr;
  for (Loop *loop = naive_ ? nullptr : loops_.getLoopFor(block); loop && is_quiet(loop);
       loop = loop->getParentLoop())
    found = loop;
  return found;
}

std::optional<UnitFields::Quantity> StretchCounters::new_counter(Instruction *place, bool before,
                                                                 const Stretch *of_records) {
  std::optional<UnitFields::Quantity> counter = unit_.add_counter();
  if (!counter)
    return std::nullopt;
  Loop *loop = quiet_loop_of(place->getParent());
  if (loop && in_registers_[loop]++ >= kMaxInRegisters)
    loop = nullptr;
  counters_.push_back({counter->number, place, before, loop, nullptr, of_records});
  return counter;
}

// Its own.
UnitFields::Quantity StretchCounters::counter_of(const Stretch &stretch) {
  auto counter = new_counter(stretch.last, false, stretch.bytes ? &stretch : nullptr);
  return counter ? *counter : unit_.add_derived({});
}

// Where a piece without a stretch can be counted.
static Instruction *begin_of(const Piece &piece) {
  if (piece.call)
    return piece.call->getNextNode();
  if (piece.block->isEntryBlock())
    return &*piece.block->getFirstNonPHIOrDbgOrAlloca();
  return &*piece.block->getFirstInsertionPt();
}

StretchCounters::Quantities StretchCounters::place_counters(ArrayRef<Stretch> stretches,
                                                            Flow &flow) {
  DenseMap<uint32_t, Instruction *> last; // of the stretch of a piece
  for (const Stretch &stretch : stretches) {
    if (stretch.bytes)
      continue;
    last[stretch.piece] = stretch.last;
    flow.pieces()[stretch.piece].is_wanted = true;
  }
  flow.choose();
  Quantities executions;
  for (uint32_t i = 0; i < flow.pieces().size(); i++) {
    const Piece &piece = flow.pieces()[i];
    if (!piece.is_counted)
      continue;
    Instruction *accesses = last.lookup(i);
    if (auto counter = new_counter(accesses ? accesses : begin_of(piece), !accesses))
      executions[i] = *counter;
  }
  for (const Derivation &derivation : flow.derivations()) {
    SmallVector<UnitFields::Term, 8> terms;
    for (const Derivation::Term &term : derivation.terms)
      if (auto known = executions.find(term.piece); known != executions.end())
        terms.push_back({known->second, term.is_negative});
    executions[derivation.piece] = unit_.add_derived(terms);
  }
  return executions;
}

void StretchCounters::place_all(ArrayRef<Stretch> stretches,
                                SmallVectorImpl<UnitFields::Quantity> &executions) {
  for (const Stretch &stretch : stretches)
    executions.push_back(counter_of(stretch));
}

void StretchCounters::count(ArrayRef<Stretch> stretches, Flow &flow) {
  if (stretches.empty())
    return;
  SmallVector<UnitFields::Quantity, 32> executions;
  if (naive_) {
    place_all(stretches, executions);
  } else {
    Quantities of_pieces = place_counters(stretches, flow);
    for (const Stretch &stretch : stretches) {
      if (stretch.bytes) {
        executions.push_back(counter_of(stretch));
        continue;
      }
      auto known = of_pieces.find(stretch.piece);
      executions.push_back(known == of_pieces.end() ? unit_.add_derived({}) : known->second);
    }
  }
  SmallVector<uint64_t, 32> numbers;
  for (auto [stretch, quantity] : zip(stretches, executions))
    numbers.push_back(unit_.add_stretch(stretch.place.in(function_), quantity, stretch.items));
  find_distance();
  std::vector<ReportPlace> places;
  if (unit_.has_windows())
    places = report_places(stretches, loops_, dominators_);
  keep_in_registers();
  emit_counters();
  for (const ReportPlace &place :
       reverse(places)) // to split a block takes as long as what lies behind
    report(stretches, numbers, place);
}

// This thread's counters of the unit: read once, in a block that is passed before all counters and that is in no loop.
void StretchCounters::find_distance() {
  if (counters_.empty())
    return;
  BasicBlock *place = nullptr;
  for (const Counter &counter : counters_) {
    BasicBlock *block = counter.place->getParent();
    if (!dominators_.isReachableFromEntry(block))
      continue;
    place = place ? dominators_.findNearestCommonDominator(place, block) : block;
  }
  BasicBlock *entry = &function_.getEntryBlock();
  while (place && place != entry &&
         (loops_.getLoopFor(place) || place->getFirstInsertionPt() == place->end())) {
    DomTreeNode *node = dominators_.getNode(place);
    DomTreeNode *above = node ? node->getIDom() : nullptr;
    place = above ? above->getBlock() : nullptr;
  }
  if (!place)
    place = entry;
  IRBuilder<> builder(place == entry ? &*entry->getFirstNonPHIOrDbgOrAlloca()
                                     : &*place->getFirstInsertionPt());
  Type *word = builder.getInt64Ty();
  Constant *variable = thread_local_hook(*function_.getParent(), "__assay_fields_distance", word);
  auto *unit = cast<StructType>(unit_.variable()->getValueType());
  LoadInst *distances = ours(builder.CreateLoad(
      word, builder.CreateStructGEP(unit, unit_.variable(), UnitFields::kDistances)));
  distances->setAtomic(AtomicOrdering::Acquire);
  Value *distance = builder.CreateAnd(
      ours(builder.CreateLoad(word, builder.CreateThreadLocalAddress(variable))), distances);
  distance_ = builder.CreateAdd(distance, ours(builder.CreateLoad(word, unit_.variable())));
}

void StretchCounters::add(IRBuilder<> &builder, uint64_t number, Value *n) {
  Value *counter = builder.CreateIntToPtr(
      builder.CreateAdd(distance_, builder.getInt64(number * 8)), builder.getPtrTy());
  Value *sum = builder.CreateAdd(ours(builder.CreateLoad(builder.getInt64Ty(), counter)), n);
  ours(builder.CreateStore(sum, counter));
}

// Variables for the counters of quiet loops: zero before the loop, added to the counters behind it.
void StretchCounters::keep_in_registers() {
  IRBuilder<> entry(&*function_.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  for (Counter &counter : counters_) {
    if (!counter.loop)
      continue;
    counter.variable = entry.CreateAlloca(entry.getInt64Ty());
    IRBuilder<> before(counter.loop->getLoopPreheader()->getTerminator());
    before.CreateStore(before.getInt64(0), counter.variable);
    SmallVector<BasicBlock *, 4> exits;
    counter.loop->getUniqueExitBlocks(exits);
    for (BasicBlock *exit : exits) {
      IRBuilder<> after(&*exit->getFirstInsertionPt());
      add(after, counter.number, after.CreateLoad(after.getInt64Ty(), counter.variable));
    }
  }
}

Value *StretchCounters::amount(IRBuilder<> &builder, const Counter &counter) {
  if (!counter.of_records)
    return builder.getInt64(1);
  Value *bytes = builder.CreateZExtOrTrunc(counter.of_records->bytes, builder.getInt64Ty());
  return builder.CreateUDiv(bytes, builder.getInt64(counter.of_records->bytes_of_one));
}

void StretchCounters::emit_counters() {
  SmallVector<AllocaInst *, 16> variables;
  for (const Counter &counter : counters_) {
    BuilderAfter builder(*counter.place, counter.before);
    if (!counter.variable) {
      add(builder, counter.number, amount(builder, counter));
      continue;
    }
    Value *n = builder.CreateLoad(builder.getInt64Ty(), counter.variable);
    builder.CreateStore(builder.CreateAdd(n, amount(builder, counter)), counter.variable);
    variables.push_back(counter.variable);
  }
  if (!variables.empty())
    PromoteMemToReg(variables, dominators_);
}

void StretchCounters::report(ArrayRef<Stretch> stretches, ArrayRef<uint64_t> numbers,
                             const ReportPlace &place) {
  BuilderAfter builder(*stretches[place.stretch].last);
  auto *type = cast<StructType>(unit_.variable()->getValueType());
  // Volatile: not to be read before a loop for all of its rounds.
  auto read = [](IRBuilder<> &at, Value *address) {
    return ours(at.CreateLoad(at.getInt32Ty(), address, true));
  };
  Value *asks = builder.CreateICmpNE(read(builder, unit_.asks()), builder.getInt32(0));
  IRBuilder<> slow(SplitBlockAndInsertIfThen(asks, builder.GetInsertPoint(), false,
                                             unlikely(builder.getContext())));
  slow.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
  for (size_t i : place.reported)
    call_runtime(slow, stretches[i], numbers[i],
                 read(slow, slow.CreateStructGEP(type, unit_.variable(), UnitFields::kNumber)));
}

void StretchCounters::call_runtime(IRBuilder<> &builder, const Stretch &stretch, uint64_t number,
                                   Value *unit) {
  const uint64_t report = ASSAY_STRETCH_REPORT(number, stretch.bases.size());
  SmallVector<Value *, 2 + ASSAY_MAX_BASES> arguments = {unit, builder.getInt64(report)};
  for (const StretchBase &base : stretch.bases)
    arguments.push_back(base.pointer);
  arguments.resize(2 + ASSAY_MAX_BASES,
                   PoisonValue::get(builder.getPtrTy())); // costs no instruction
  call_keeping_registers(builder, "__assay_fields_sample", arguments);
}

} // namespace assay::compiler
