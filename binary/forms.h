// Symbolic forms: each value and each address of a routine as a sum of a constant, loop counters and
// definitions, with widths where they matter.
//
// Substitution stops at what a routine is given, at what it reads from memory but for what it keeps
// on its stack (binary/spills.h), at what is not linear, and at joins. A join at the header of a
// loop that goes up by the same amount in each iteration is an induction variable: a + I * b, I the
// iterations of the loop from 0. Behind its loop a counter keeps its last value, which takes its
// place where it is known.
//
// Source: skeletonization.txt, "Symbolic Analysis".
#pragma once

#include "binary/expression.h"
#include "binary/ssa.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace binary {

// What a branch asks when it is taken: left OP right, of so many bytes, as they are without wrapping.
struct Condition {
  enum class Op : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };
  Op op;
  bool is_signed;
  unsigned width;
  ExprId left, right; // extended to 64 bits as they are compared
  ExprId difference;  // left - right
};

class Forms {
public:
  Forms(const FlowGraph &graph, const Ssa &ssa);

  // Definitions are ValueIds, counters are indexes of loops.
  const Expressions &expressions() const { return expressions_; }
  // Where further expressions of the same values may be made.
  Expressions &expressions_to_add() { return expressions_; }
  // Whether an address is one of the image's own plus something: where it lies in memory is in it. In
  // files that are not position independent, addresses are numbers, and the answer is no.
  bool in_image(ExprId form) const;
  // Not known() of what no address is made of: flags, vectors, memory.
  ExprId of(ValueId value) const { return forms_[value.v]; }
  // The address of micro-op number `at` in Ssa::uops, `uop` in the graph, at this node.
  ExprId address(uint32_t node, uint32_t at, const assay_uop &uop);
  // Of micro-op number `at`, a branch at this node; nullopt if its flags do not come from a comparison.
  std::optional<Condition> condition(uint32_t node, uint32_t at);

  // Visits the definitions in an expression, as often as they occur.
  template <class Visit> void definitions(ExprId form, Visit visit) const;
  // Whether all definitions in it are made outside the loop: it changes with counters alone.
  bool invariant(ExprId form, uint32_t loop) const;
  // Whether an address at this node changes with counters alone in all loops around it.
  bool affine(ExprId form, uint32_t node) const;

  // "rax.7", "I", and a form of them: "0xe294b88 + 8*J + 30416*I".
  std::string name(ValueId value) const;
  std::string counter_name(uint32_t loop) const { return counter_names_[loop]; }
  std::string text(ExprId form) const;
  std::string text(const Condition &condition) const;

private:
  struct Induction {
    uint32_t loop = Loop::kNone;
    ExprId step;
    unsigned width = 8;
  };
  void name_counters();
  void evaluate();
  void evaluate_with_inductions();
  bool find_inductions();  // whether there are new ones
  bool find_last_counts(); // as well
  // What a value is to code at this node.
  ExprId form_at(ValueId value, uint32_t node);
  ExprId behind_loops(ExprId form, uint32_t node, unsigned width = 8);
  ExprId last_count(const Term &term, uint32_t node, unsigned width);
  bool counts_inside(ExprId form, uint32_t loop) const;
  struct Compared {
    ExprId left, right;
    bool of_zero; // with 0: no overflow, no carry
  };
  std::optional<Compared> compared(uint32_t node, uint32_t place, const assay_uop &asked);
  static std::optional<Condition::Op> relation(unsigned asked, bool of_zero);
  ExprId first_operand(uint32_t node, uint32_t place);
  ExprId second_operand(uint32_t node, uint32_t place);
  const assay_uop &uop_making(uint32_t place) const;
  ExprId join(ValueId value);
  ExprId iterated(ValueId value, const Induction &induction);
  ExprId substituted(ExprId form, uint32_t node);
  ExprId micro_op(uint32_t node, uint32_t at, const assay_uop &uop);
  bool may_be_in_address(ValueId value) const;
  ExprId operand(uint32_t node, ValueId value, unsigned reg);
  ExprId leaf(ValueId value, unsigned width = 8);
  static constexpr uint64_t kBias = UINT64_MAX; // as a definition: where the image lies
  uint32_t version(ValueId value) const;
  void append_text(ExprId form, std::string &to) const;
  void append_term(const Term &term, bool is_first, std::string &to) const;

  const FlowGraph &graph_;
  const Ssa &ssa_;
  Expressions expressions_;
  mutable std::vector<uint32_t> versions_; // by value; made when the first name is asked for
  ExprId zero_, bias_;
  std::vector<ExprId> forms_;                          // by value; see of()
  std::unordered_map<uint32_t, Induction> inductions_; // by value
  std::unordered_map<uint32_t, ValueId> spills_;       // by value that is loaded
  // Of a loop: what its counter is behind it, in the low `bits` bits, of which 0 stands for 2^bits.
  struct LastCount {
    bool is_asked_for = false; // there is a form behind the loop that has its counter
    ExprId times;              // one more than the last count; not known(): neither is that
    unsigned bits = 64;
  };
  std::vector<LastCount> last_counts_;
  std::vector<std::string> counter_names_;
};

template <class Visit> void Forms::definitions(ExprId form, Visit visit) const {
  const Expr &node = expressions_[form];
  if (node.kind == ExprKind::definition) {
    if (node.value != kBias)
      visit(ValueId{static_cast<uint32_t>(node.value)});
    return;
  }
  for (const Term &term : expressions_.terms(form))
    definitions(term.of, visit);
}

} // namespace binary
