// To ask costs three instructions, and a window is a sample: so not each stretch asks. One that
// surely follows another, without a call between, is reported there, if its objects are known by
// then. One that surely leads to others is reported by them.
//
// What is between stretches of one report is at most a few blocks of code without calls, so a
// window holds the same objects and fields as if each stretch reported by itself. Counts do not
// depend on it.

#include "compiler/fields_reports.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr size_t kMaxReported = 4; // at one place
constexpr size_t kMaxBlocks = 16;  // between two that are reported together
constexpr size_t kMaxSuccessors = 4;

bool has_call(BasicBlock::iterator from, BasicBlock::iterator to) {
  return std::any_of(from, to, [](const Instruction &each) { return may_not_return(each); });
}

// Does code that has passed `from` always come to `to`, in another block, without a call?
bool leads_to(const Instruction &from, const Instruction &to) {
  BasicBlock *target = const_cast<BasicBlock *>(to.getParent());
  auto *begin = const_cast<BasicBlock *>(from.getParent());
  if (has_call(std::next(const_cast<Instruction &>(from).getIterator()), begin->end()) ||
      has_call(target->begin(), const_cast<Instruction &>(to).getIterator()))
    return false;
  SmallPtrSet<BasicBlock *, kMaxBlocks> seen;
  SmallVector<BasicBlock *, kMaxBlocks> open = {begin};
  while (!open.empty()) {
    BasicBlock *block = open.pop_back_val();
    if (succ_empty(block))
      return false;
    for (BasicBlock *next : successors(block)) {
      if (next == target || seen.contains(next))
        continue;
      if (next == begin || seen.size() == kMaxBlocks || has_call(next->begin(), next->end()))
        return false;
      seen.insert(next);
      open.push_back(next);
    }
  }
  return true;
}

class Placement {
public:
  Placement(ArrayRef<Stretch> stretches, const LoopInfo &loops, const DominatorTree &dominators)
      : stretches_(stretches), loops_(loops), dominators_(dominators), at_(stretches.size()) {
    for (size_t i = 0; i < stretches.size(); i++) {
      at_[i] = {i};
      const Stretch &stretch = stretches[i];
      in_block_.try_emplace(stretch.last->getParent(), i);
      last_in_block_[stretch.last->getParent()] = i;
    }
  }

  void run() {
    for (size_t i = 0; i < stretches_.size(); i++)
      report_before(i);
    for (size_t i = 0; i < stretches_.size(); i++)
      report_behind(i);
  }

  std::vector<ReportPlace> places() {
    std::vector<ReportPlace> places;
    for (size_t i = 0; i < at_.size(); i++)
      if (!at_[i].empty())
        places.push_back({i, at_[i]});
    return places;
  }

private:
  // At a stretch that dominates this one and leads to it.
  void report_before(size_t i) {
    const Stretch &stretch = stretches_[i];
    const BasicBlock *block = stretch.last->getParent();
    if (in_block_.lookup(block) != i)
      return; // behind a call
    const DomTreeNode *node = dominators_.getNode(block);
    for (size_t up = 0; up < 3 && node && node->getIDom(); up++) {
      node = node->getIDom();
      auto known = last_in_block_.find(node->getBlock());
      if (known == last_in_block_.end())
        continue;
      const size_t host = known->second;
      if (loops_.getLoopFor(node->getBlock()) == loops_.getLoopFor(block) && !at_[host].empty() &&
          at_[host].size() + at_[i].size() <= kMaxReported && knows_bases(host, stretch) &&
          leads_to(*stretches_[host].last, *stretch.last)) {
        at_[host].append(at_[i]);
        at_[i].clear();
      }
      return;
    }
  }

  bool knows_bases(size_t host, const Stretch &stretch) const {
    return all_of(stretch.bases, [&](const StretchBase &base) {
      auto *made = dyn_cast<Instruction>(base.pointer);
      return !made || made == stretches_[host].last ||
             dominators_.dominates(made, stretches_[host].last);
    });
  }

  // At the stretches that this one leads to, one in each block that may follow.
  void report_behind(size_t i) {
    BasicBlock *block = stretches_[i].last->getParent();
    if (at_[i].empty() || last_in_block_.lookup(block) != i || succ_size(block) > kMaxSuccessors ||
        has_call(std::next(stretches_[i].last->getIterator()), block->end()))
      return;
    SmallVector<size_t, 4> hosts;
    for (BasicBlock *next : successors(block)) {
      auto known = in_block_.find(next);
      if (!next->getUniquePredecessor() || known == in_block_.end() || at_[known->second].empty() ||
          has_call(next->begin(), stretches_[known->second].last->getIterator()) ||
          at_[known->second].size() + at_[i].size() > kMaxReported)
        return;
      hosts.push_back(known->second);
    }
    if (hosts.empty())
      return;
    for (size_t host : hosts)
      at_[host].insert(at_[host].begin(), at_[i].begin(), at_[i].end());
    at_[i].clear();
  }

  ArrayRef<Stretch> stretches_;
  const LoopInfo &loops_;
  const DominatorTree &dominators_;
  std::vector<SmallVector<size_t, 4>> at_;                        // what is reported behind each
  DenseMap<const BasicBlock *, size_t> in_block_, last_in_block_; // its first and last stretch
};

} // namespace

std::vector<ReportPlace> report_places(ArrayRef<Stretch> stretches, const LoopInfo &loops,
                                       const DominatorTree &dominators) {
  Placement placement(stretches, loops, dominators);
  placement.run();
  return placement.places();
}

} // namespace assay::compiler
