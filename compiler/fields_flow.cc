// What goes into a place of a function comes out of it. So not every piece needs a counter: of a
// branch and its two sides, two are enough. Knuth and Stevenson ("Optimal measurement points for
// program frequency counts", 1973) say which.
//
// The begins and ends of pieces fall into classes: the end of a piece and the begin of each that
// may follow it are in one. Of a class, as many executions come in as go out. So pieces are the
// edges of a graph whose nodes are classes; the pieces outside of a spanning tree are counted, and
// those of the tree follow from them, leaf by leaf. The tree takes the hottest ones.
//
// A callee may exit, throw, or never come back. The end of a piece before such a call, the begin of
// the one behind it, the function's own begin and its ends are therefore all in one class, of which
// no equation is asked. That makes the result exact even if a function is left in the middle, and
// in the child of a fork.
//
// Counters stand in pieces only, never on the edges between them, so that no block is added. A
// derived piece that needs more counters than it saves gets a counter of its own.

#include "compiler/fields_flow.h"

#include <numeric>
#include <tuple>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr uint32_t kOutside = 0;       // the class of calls, and of the function's begin and ends
constexpr size_t kMaxPieces = 1 << 14; // of a function whose flow is looked at
constexpr size_t kMaxImproved =
    1 << 11; // of one whose choice is improved, which takes quadratic time

uint32_t begin_of(uint32_t piece) {
  return 1 + 2 * piece;
}
uint32_t end_of(uint32_t piece) {
  return 2 + 2 * piece;
}

uint64_t sum(uint64_t a, uint64_t b) {
  return SaturatingAdd(a, b);
}

} // namespace

bool may_not_return(const Instruction &instruction) {
  auto *call = dyn_cast<CallBase>(&instruction);
  return call && !isa<DbgInfoIntrinsic, MemIntrinsic>(call) &&
         !(call->hasFnAttr(Attribute::WillReturn) && call->doesNotThrow());
}

Flow::Flow(Function &function, BlockFrequencyInfo &frequencies) {
  DenseMap<const BasicBlock *, uint32_t> first;
  for (BasicBlock &block : function) {
    first[&block] = (uint32_t)pieces_.size();
    const uint64_t frequency = frequencies.getBlockFreq(&block).getFrequency();
    pieces_.push_back({&block, nullptr, frequency});
    for (Instruction &instruction : block)
      if (may_not_return(instruction) && !instruction.isTerminator())
        pieces_.push_back({&block, &instruction, frequency});
  }
  IntEqClasses classes(1 + 2 * (unsigned)pieces_.size());
  classes.join(kOutside, begin_of(0));
  for (uint32_t i = 0; i < pieces_.size(); i++) {
    if (i + 1 < pieces_.size() && pieces_[i + 1].call) {
      classes.join(kOutside, end_of(i));
      classes.join(kOutside, begin_of(i + 1));
      continue;
    }
    const Instruction &last = *pieces_[i].block->getTerminator();
    if (may_not_return(last) || isa<ReturnInst, ResumeInst>(last))
      classes.join(kOutside, end_of(i));
    for (const BasicBlock *next : successors(pieces_[i].block))
      classes.join(end_of(i), begin_of(first[next]));
  }
  classes.compress();
  classes_ = classes.getNumClasses();
  for (uint32_t i = 0; i < pieces_.size(); i++) {
    pieces_[i].from = classes[begin_of(i)];
    pieces_[i].to = classes[end_of(i)];
  }
}

void Flow::choose_all() {
  for (Piece &piece : pieces_)
    piece.is_counted = piece.is_wanted;
  derivations_.clear();
}

// The pieces of the tree from the leaves on. The class of the outside is the root, and needs no equation.
void Flow::solve(ArrayRef<bool> is_in_tree) {
  std::vector<SmallVector<uint32_t, 4>> at(classes_); // the pieces that begin or end in a class
  SmallVector<uint32_t, 32> unsolved(classes_, 0);    // of the tree
  for (uint32_t i = 0; i < pieces_.size(); i++) {
    const Piece &piece = pieces_[i];
    if (piece.from == piece.to)
      continue; // comes in and goes out
    for (uint32_t end : {piece.from, piece.to}) {
      at[end].push_back(i);
      unsolved[end] += is_in_tree[i];
    }
  }
  SmallVector<uint32_t, 32> leaves;
  const uint32_t root = pieces_[0].from;
  for (uint32_t i = 0; i < classes_; i++)
    if (i != root && unsolved[i] == 1)
      leaves.push_back(i);
  SmallVector<bool, 32> is_solved(pieces_.size(), false);
  while (!leaves.empty()) {
    const uint32_t leaf = leaves.pop_back_val();
    if (unsolved[leaf] != 1)
      continue;
    Derivation derivation;
    derivation.piece =
        *find_if(at[leaf], [&](uint32_t i) { return is_in_tree[i] && !is_solved[i]; });
    const Piece &piece = pieces_[derivation.piece];
    const bool comes_in = piece.to == leaf;
    for (uint32_t i : at[leaf])
      if (i != derivation.piece)
        derivation.terms.push_back({i, (pieces_[i].to == leaf) == comes_in});
    is_solved[derivation.piece] = true;
    for (uint32_t end : {piece.from, piece.to})
      if (--unsolved[end] == 1 && end != root)
        leaves.push_back(end);
    derivations_.push_back(std::move(derivation));
  }
}

// Of the counters that are needed where some pieces of the tree have one, too.
uint64_t Flow::cost(ArrayRef<bool> is_direct, SmallVectorImpl<bool> &needed) const {
  needed.assign(pieces_.size(), false);
  SmallVector<bool, 32> is_derived(pieces_.size(), false);
  for (uint32_t i = 0; i < pieces_.size(); i++)
    needed[i] = pieces_[i].is_wanted;
  for (const Derivation &each : reverse(derivations_)) {
    is_derived[each.piece] = !is_direct[each.piece];
    if (needed[each.piece] && is_derived[each.piece])
      for (const Derivation::Term &term : each.terms)
        needed[term.piece] = true;
  }
  uint64_t frequency = 0;
  for (uint32_t i = 0; i < pieces_.size(); i++)
    if (needed[i] && !is_derived[i])
      frequency = sum(frequency, pieces_[i].frequency);
  return frequency;
}

void Flow::choose() {
  const bool has_insertion_points = all_of(pieces_, [](const Piece &piece) {
    return piece.block->getFirstInsertionPt() != piece.block->end();
  });
  if (pieces_.size() > kMaxPieces || !has_insertion_points) {
    choose_all();
    return;
  }
  SmallVector<uint32_t, 32> order(pieces_.size());
  std::iota(order.begin(), order.end(), 0);
  sort(order, [&](uint32_t a, uint32_t b) { // the hottest first; among equals, unwanted ones
    return std::tuple(pieces_[b].frequency, pieces_[a].is_wanted, a) <
           std::tuple(pieces_[a].frequency, pieces_[b].is_wanted, b);
  });
  IntEqClasses joined(classes_);
  SmallVector<bool, 32> is_in_tree(pieces_.size(), false);
  for (uint32_t i : order)
    if (joined.findLeader(pieces_[i].from) != joined.findLeader(pieces_[i].to)) {
      joined.join(pieces_[i].from, pieces_[i].to);
      is_in_tree[i] = true;
    }
  solve(is_in_tree);

  SmallVector<bool, 32> is_direct(pieces_.size(), false), needed;
  uint64_t least = cost(is_direct, needed);
  if (pieces_.size() <= kMaxImproved)
    for (uint32_t i : reverse(order)) {
      if (!is_in_tree[i] || !pieces_[i].is_wanted)
        continue;
      is_direct[i] = true;
      const uint64_t with = cost(is_direct, needed);
      if (with <= least)
        least = with;
      else
        is_direct[i] = false;
    }
  least = cost(is_direct, needed);
  for (uint32_t i = 0; i < pieces_.size(); i++)
    pieces_[i].is_counted = needed[i] && (!is_in_tree[i] || is_direct[i]);
  erase_if(derivations_,
           [&](const Derivation &each) { return !needed[each.piece] || is_direct[each.piece]; });
  uint64_t by_itself = 0;
  for (const Piece &piece : pieces_)
    if (piece.is_wanted)
      by_itself = sum(by_itself, piece.frequency);
  if (by_itself <= least)
    choose_all();
}

} // namespace assay::compiler
