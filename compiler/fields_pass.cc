// Counts the accesses to fields: not each by itself, but how often each stretch of code is executed
// that has such accesses. What a stretch accesses is known here, and written down (abi/fields.h);
// the counts of fields follow from both.
//
// A stretch is the accesses in a piece of a basic block that is executed as a whole: it ends at
// calls that may not come back. So a count is exact wherever the program leaves a function, and one
// addition serves all fields of the stretch; and some need no addition at all, as they follow from
// others (fields_flow.cc). Each thread has counters of its own: no update is lost, none is atomic.
//
// Naive: each access is a stretch of its own, and has a counter; the oracle.
//
// Source: cache-fragmentation.txt, "Struct field access patterns". Its counter is at each address
// computation, which counts too much (an address is not an access) and too little (an address may
// be used many times, and that of a first field is none). So that can be compared (docs/fields.md):
// ASSAY_FIELDS_ADDRESSES counts the computations that are left of those whose address is accessed.

#include "abi/fields.h"
#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/called_accesses.h"
#include "compiler/chosen_members.h"
#include "compiler/counting.h"
#include "compiler/fields_stretches.h"
#include "compiler/fields_unit.h"
#include "compiler/joined_loads.h"
#include "compiler/member_tags.h"
#include "compiler/split_copies.h"
#include "compiler/tag_members.h"
#include "compiler/tool_pass.h"
#include "compiler/vector_members.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace assay::compiler::fields {
namespace {

constexpr Interest kEverything = {.globals = true, .stack = true};

struct Fields : ModuleState {
  Fields(Module &module, const ToolRequest &request)
      : tags(module), unit(module, !(request.mode & ASSAY_FIELDS_COUNTS) && !request.naive) {}
  MemberTags tags;
  UnitFields unit;
};

class FieldsInstrumenter {
public:
  FieldsInstrumenter(Function &function, const ToolRequest &request, Fields &fields,
                     FunctionAnalysisManager &analyses)
      : layout_(function.getDataLayout()), request_(request), fields_(fields), function_(function),
        library_(analyses.getResult<TargetLibraryAnalysis>(function)),
        flow_(function, analyses.getResult<BlockFrequencyAnalysis>(function)),
        counters_(function, fields.unit, analyses.getResult<LoopAnalysis>(function),
                  analyses.getResult<DominatorTreeAnalysis>(function), request.naive) {}

  void run() {
    fields_.tags.begin(function_);
    for (BasicBlock &block : function_)
      collect(block);
    counters_.count(stretches_, flow_);
  }

private:
  // Goes from piece to piece as Flow does.
  void collect(BasicBlock &block) {
    for (Instruction &instruction : block) {
      if (may_not_return(instruction)) {
        close();
        piece_ += !instruction.isTerminator();
      }
      forget_variable(instruction);
      if (request_.mode & ASSAY_FIELDS_ADDRESSES) {
        if (auto *address = dyn_cast<GetElementPtrInst>(&instruction))
          add_address(*address);
      } else if (std::optional<Access> access = interesting(instruction, kEverything))
        add(instruction, *access);
      else if (std::optional<MaskedAccess> masked = interesting_masked(instruction, kEverything))
        add(instruction, *masked);
      else if (auto *memory = dyn_cast<AnyMemIntrinsic>(&instruction))
        add_copy(*memory);
      else if (auto *call = dyn_cast<CallBase>(&instruction))
        add_called(*call);
      if (request_.naive)
        close();
    }
    close();
    piece_++;
  }

  // Of a memset that the optimiser has made of stores, each field counts once. What clang initialises without saying of
  // what is a value that has no name yet.
  void add_set(AnyMemSetInst &memory) {
    auto *length = dyn_cast<ConstantInt>(memory.getLength());
    if (length && !length->isZero() && !isa<AllocaInst>(getUnderlyingObject(memory.getDest())))
      add(memory, {memory.getDest(), length->getZExtValue(), Align(1), false, true});
  }

  void add(Instruction &instruction, const Access &access) {
    for (const MemberAccess &member : fields_.tags.find(instruction, access))
      if (member.record || member.is_lost) {
        add(instruction, member, access.pointer, access.reads * member.times,
            access.writes * member.times, member.is_copy ? member.times : 0);
        if (access.writes && !vector_of(instruction) && is_of_array(member))
          note_element(access.pointer);
      }
  }

  static bool is_of_array(const MemberAccess &member) {
    if (!member.record || member.leaves.first != member.leaves.last)
      return false;
    const Leaf &leaf = member.record->leaves[member.leaves.first];
    return leaf.elements > 1 || leaf.flags & ASSAY_LEAF_ARRAY;
  }

  // Of the item that was added to: windows see which element threads write. One of the stretch's is enough.
  void note_element(Value *pointer) {
    FieldItem &item = open_.items[last_item_];
    if (!item.written)
      item.written = pointer;
  }

  // Each lane that the mask chooses is an access of the source. A mask that is not known is a stretch
  // of its own, which is executed once for each lane.
  void add(Instruction &instruction, const MaskedAccess &access) {
    for (const MemberAccess &member : fields_.tags.find(instruction, access)) {
      IRBuilder<> builder(&instruction);
      Value *lanes = active_lanes(builder, access);
      const auto *known = dyn_cast<ConstantInt>(lanes);
      const uint64_t times = known ? known->getZExtValue() : 1;
      if (times == 0)
        continue;
      if (!known) {
        close();
        open_.bytes = lanes;
        open_.bytes_of_one = 1;
      }
      Value *first = access.pointer->getType()->isVectorTy()
                         ? builder.CreateExtractElement(access.pointer, uint64_t{0})
                         : access.pointer;
      add(instruction, member, first, access.writes ? 0 : times, access.writes ? times : 0, 0);
      if (!known)
        close();
    }
  }

  void add_address(GetElementPtrInst &address) {
    for (User *user : address.users())
      if (auto *instruction = dyn_cast<Instruction>(user))
        if (std::optional<Access> access = interesting(*instruction, kEverything);
            access && access->pointer == &address)
          for (const MemberAccess &member : fields_.tags.find(*instruction, *access))
            if (member.record) {
              add(address, member, &address, 1, 0, 0);
              return;
            }
  }

  // A variable that gets another value points to another object.
  void forget_variable(const Instruction &instruction) {
    if (auto *store = dyn_cast<StoreInst>(&instruction))
      for (StretchBase &base : open_.bases)
        if (base.variable == store->getPointerOperand())
          base.variable = nullptr;
  }

  // Of a part of a member, or of one whose length is not known here, that a call compares, copies or fills: one access,
  // however long. Returns whether there is one.
  bool add_called(CallBase &call, const MemberCopy &counted = {}) {
    bool is_added = false;
    auto add_argument = [&](Value *pointer, bool writes) {
      if (writes ? counted.written.record : counted.read.record)
        return;
      const MemberAccess member = fields_.tags.find_argument(call, pointer);
      if (!member.record && !member.is_lost)
        return;
      add(call, member, pointer, !writes, writes, 0);
      is_added = true;
    };
    for (const RangeAccess &range : interesting_ranges(call, library_, kEverything))
      add_argument(range.pointer, range.writes);
    if (std::optional<RangeAccess> range = interesting_io(call, kEverything))
      add_argument(range->pointer, range->writes);
    for (const StringAccess &string : interesting_strings(call, library_, kEverything)) {
      add_argument(string.string, string.writes);
      if (string.other)
        add_argument(string.other, false);
    }
    return is_added;
  }

  void add_copy(AnyMemIntrinsic &memory) {
    const MemberCopy copy = fields_.tags.find_copy(memory);
    auto *length = dyn_cast<ConstantInt>(memory.getLength());
    auto *transfer = dyn_cast<AnyMemTransferInst>(&memory);
    const bool is_added = add_called(memory, copy); // a side that is part of a member
    if (!copy.written.record && !copy.read.record) {
      if (auto *set = dyn_cast<AnyMemSetInst>(&memory); set && !is_added)
        add_set(*set);
      return;
    }
    if (!length) { // a stretch of its own, which is executed for each record
      close();
      open_.bytes = memory.getLength();
      open_.bytes_of_one = copy.written.record ? copy.written_bytes : copy.read_bytes;
    }
    auto times = [&](uint64_t bytes) { return length ? length->getZExtValue() / bytes : 1; };
    if (copy.read.record && transfer)
      add(memory, copy.read, transfer->getSource(), times(copy.read_bytes), 0,
          times(copy.read_bytes));
    if (copy.written.record)
      add(memory, copy.written, memory.getDest(), 0, times(copy.written_bytes),
          transfer ? times(copy.written_bytes) : 0);
    if (!length)
      close();
  }

  void add(Instruction &instruction, const MemberAccess &member, Value *pointer, uint64_t reads,
           uint64_t writes, uint64_t copied) {
    if (pointer->getType()->getPointerAddressSpace()) // of a thread, and not an object's
      return;
    open_.last = &instruction;
    open_.place.add(instruction);
    int64_t start = 0;
    const uint32_t base = member.record ? number_of_base(pointer, member, start) : 0;
    for (const auto &[i, item] : enumerate(open_.items))
      if (item.record == member.record && item.leaves.first == member.leaves.first &&
          item.leaves.last == member.leaves.last && item.base == base && item.start == start) {
        item.reads += reads, item.writes += writes, item.copied += copied;
        last_item_ = i;
        return;
      }
    last_item_ = open_.items.size();
    open_.items.push_back(
        {member.record, member.leaves, reads, writes, copied, base, start, nullptr, 0});
  }

  // Accesses of one base are to one object: the pointer without constant distances, and of an array
  // in the object without the index. Without optimisation each access loads its pointer from a
  // variable anew: then the variable is the base.
  uint32_t number_of_base(Value *pointer, const MemberAccess &member, int64_t &start) {
    APInt offset(64, 0);
    Value *base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
    const Leaf &leaf = member.record->leaves[member.leaves.first];
    if (auto *indexed = dyn_cast<GEPOperator>(base);
        indexed && (leaf.elements > 1 || leaf.flags & ASSAY_LEAF_ARRAY) &&
        !steps_by(*indexed, member.record->size, layout_))
      base = indexed->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
    start = offset.getSExtValue() + member.from.value_or(-(int64_t)(leaf.offset_bits / 8));
    if (!member.from)
      start -=
          in_array(*member.record, leaf, start - fields_.tags.begin_behind(base, *member.record));
    Value *variable = nullptr;
    if (auto *load = dyn_cast<LoadInst>(base))
      if (auto *slot = dyn_cast<AllocaInst>(load->getPointerOperand()))
        variable = slot;
    auto known = find_if(open_.bases, [&](const StretchBase &each) {
      return each.pointer == base || (variable && each.variable == variable);
    });
    if (known == open_.bases.end() && open_.bases.size() < ASSAY_MAX_BASES) {
      open_.bases.push_back({base, variable});
      return (uint32_t)open_.bases.size() - 1;
    }
    return (uint32_t)(known - open_.bases.begin());
  }

  // Of an access so many bytes behind where an element of no. 0 would be, the bytes of the elements between. It is to
  // the object at the base, or to another of an array of them.
  static int64_t in_array(const RecordLayout &record, const Leaf &leaf, int64_t distance) {
    const bool is_array = leaf.flags & ASSAY_LEAF_ARRAY;
    if (is_array && !leaf.size_bits) // there are no arrays of objects that end with one
      return distance;
    const int64_t bytes =
        (int64_t)((leaf.elements - 1) * leaf.stride + (is_array ? leaf.size_bits / 8 : 1));
    const auto size = (int64_t)record.size;
    const int64_t within = size ? (distance % size + size) % size : 0;
    return within < bytes ? within : 0;
  }

  // Elements have what pointers the objects leave.
  void place_elements() {
    for (FieldItem &item : open_.items) {
      if (!item.written)
        continue;
      const auto *known = find_if(
          open_.bases, [&](const StretchBase &each) { return each.pointer == item.written; });
      if (known == open_.bases.end() && open_.bases.size() == ASSAY_MAX_BASES)
        continue;
      item.element = (uint32_t)(known - open_.bases.begin()) + 1;
      if (known == open_.bases.end())
        open_.bases.push_back({item.written, nullptr});
    }
  }

  void close() {
    place_elements();
    open_.piece = piece_;
    if (!open_.items.empty())
      stretches_.push_back(std::move(open_));
    open_ = Stretch();
  }

  const DataLayout &layout_;
  const ToolRequest &request_;
  Fields &fields_;
  Function &function_;
  const TargetLibraryInfo &library_;
  Flow flow_;
  StretchCounters counters_;
  uint32_t piece_ = 0;
  Stretch open_;
  size_t last_item_ = 0; // that was added to
  SmallVector<Stretch, 0> stretches_;
};

} // namespace

extern const ToolPass pass;
const ToolPass pass = {
    .name = "fields",
    .follow = follow_split_copies,
    .tag = tag_members,
    .simplified = keep_joined_loads_apart,
    .prepare =
        [](Module &module, ToolRequest &request) {
          release_joined_loads(module);
          request.state = std::make_shared<Fields>(module, request);
        },
    .reshape =
        [](Function &function, const ToolRequest &request) {
          split_chosen_accesses(function, static_cast<Fields &>(*request.state).tags);
        },
    .finish =
        [](Module &module, const ToolRequest &request) {
          static_cast<Fields &>(*request.state).unit.finish();
          MemberTags::remove(module);
        },
    .instrument =
        [](Function &function, const ToolRequest &request, FunctionAnalysisManager &analyses) {
          FieldsInstrumenter(function, request, static_cast<Fields &>(*request.state), analyses)
              .run();
        },
};

} // namespace assay::compiler::fields
