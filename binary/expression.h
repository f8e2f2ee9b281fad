// Symbolic values: what a 64-bit word is, in terms of things that are not looked into further.
//
// Every expression stands for exactly one 64-bit value; arithmetic wraps around. Sums are kept in one
// normal form, constant + coefficient * term + …, the terms in order; a multiplication by a constant,
// a shift by one and a difference are sums too. What is cut to 8, 16 or 32 bits and extended again is
// a term of its own around a sum, so that a value of 32 bits keeps its width. Equal expressions are
// the same object.
#pragma once

#include "abi/uop.h"
#include "base/strong_id.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace binary {

using ExprId = base::Id<struct ExprTag>;

enum class ExprKind : uint8_t {
  constant,    // value
  definition,  // value: what it is the definition of, by its user
  counter,     // value: of which loop; 0, 1, 2 … in its iterations
  sum,         // value + coefficients * operands
  zero_extend, // of the low `width` bytes of operand 0
  sign_extend,
  load,      // `width` bytes at operand 0; value: the state of memory
  operation, // micro-op `op` of `width` on up to three operands; value: its small constants
  unknown,   // nothing is known; equal to nothing else
};

struct Term {
  ExprId of;
  uint64_t coefficient;
};

struct Expr {
  ExprKind kind = ExprKind::unknown;
  uint8_t width = 8;
  uint8_t op = 0;
  uint8_t bits = 64;  // most() has so many, and all are set; else Expressions::kExact
  uint32_t first = 0; // terms of a sum, operands of the others; up to the next expression's
  uint64_t value = 0;
};
static_assert(sizeof(Expr) == 16); // a routine has one for each of its values

class Expressions {
public:
  ExprId constant(uint64_t value);
  // Of a value that fits into `width` bytes.
  ExprId definition(uint64_t which, unsigned width = 8);
  ExprId counter(uint64_t loop);
  ExprId unknown();
  ExprId load(unsigned width, ExprId address, uint64_t state);

  ExprId add(ExprId a, ExprId b) { return combine(a, 1, b, 1); }
  ExprId sub(ExprId a, ExprId b) { return combine(a, 1, b, ~uint64_t{0}); }
  // ca * a + cb * b
  ExprId combine(ExprId a, uint64_t ca, ExprId b, uint64_t cb);
  // a + (b << shift) + c + offset: an address.
  ExprId address(ExprId a, ExprId b, unsigned shift, ExprId c, int64_t offset);
  ExprId scale(ExprId a, uint64_t factor) { return combine(a, factor, constant(0), 0); }
  // The low `width` bytes; 8 leaves all.
  ExprId zero_extend(ExprId a, unsigned width);
  ExprId sign_extend(ExprId a, unsigned width);
  // A micro-op that has a value, of these operands; what can be is made a sum, an extension or a
  // constant.
  ExprId apply(const assay_uop &uop, ExprId a, ExprId b, ExprId c);

  const Expr &operator[](ExprId id) const { return nodes_[id.v]; }
  std::span<const Term> terms(ExprId id) const { // of a sum, or the operands (coefficient 1)
    const size_t end = id.v + 1 < nodes_.size() ? nodes_[id.v + 1].first : terms_.size();
    return {terms_.data() + nodes_[id.v].first, terms_.data() + end};
  }
  bool is_constant(ExprId id) const { return nodes_[id.v].kind == ExprKind::constant; }
  bool is_constant(ExprId id, uint64_t value) const {
    return is_constant(id) && nodes_[id.v].value == value;
  }
  // The constant of a sum, or the constant; 0 of others.
  uint64_t offset_of(ExprId id) const;
  // a - b, where that is a constant.
  std::optional<uint64_t> distance(ExprId a, ExprId b) const;
  // An upper bound of the value, unsigned.
  uint64_t most(ExprId id) const;

  size_t size() const { return nodes_.size(); }
  void reserve(size_t expressions) { nodes_.reserve(expressions); }
  // Forgets all of them, and keeps their memory for others.
  void clear() {
    nodes_.clear();
    terms_.clear();
    exact_.clear();
    std::fill(table_.begin(), table_.end(), 0);
  }

private:
  ExprId intern(Expr node, std::span<const Term> terms);
  ExprId add_node(Expr node, std::span<const Term> terms);
  void grow_table();
  uint64_t bound(const Expr &node, std::span<const Term> terms) const;
  void append(std::vector<Term> &to, uint64_t &offset, ExprId id, uint64_t factor) const;
  ExprId sum(uint64_t offset, std::vector<Term> &terms);
  ExprId cut(ExprId a, unsigned width);

  static constexpr uint8_t kExact = 255;

  std::vector<Expr> nodes_;
  std::vector<Term> terms_;
  std::vector<std::pair<ExprId, uint64_t>> exact_; // bounds, where `bits` cannot say them; by id
  // Open addressing. A slot has a node's index + 1, below what the table's size leaves free of it the top bits of the
  // node's hash: one that differs there need not be looked at, which would be a wait for memory. 0: free.
  std::vector<uint32_t> table_;
  // Of the sum that is being made. Kept, because most sums are made for one look, and each would ask for
  // memory anew.
  std::vector<Term> summands_, covered_;
};

} // namespace binary
