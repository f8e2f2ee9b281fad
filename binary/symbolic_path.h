// Executes the way to a jump symbolically: what registers hold becomes expressions.
#pragma once

#include "binary/code.h"
#include "binary/effects.h"
#include "binary/expression.h"
#include "binary/register_constants.h"
#include "image/executable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace binary {

// A block that is executed before a jump: its instructions in order, in Code::instructions, and
// whether the branch at its end was taken.
struct PathPiece {
  std::span<const uint32_t> instructions;
  bool taken = false;
};

struct Path {
  static constexpr unsigned kMaxPieces = 7;
  const Constants *before;
  std::array<PathPiece, kMaxPieces> pieces; // the last ends with the jump
  unsigned count = 0;                       // of pieces
};

// A branch on a path, and which way it went.
struct Condition {
  unsigned test; // if_o …
  ExprId flags;
  bool holds;
};

// One path after the other, with the memory of the one before: most paths of a program are a few
// instructions, and there are hundreds of thousands.
class SymbolicPath {
public:
  // Both must outlive it.
  SymbolicPath(const image::Executable &executable, const Code &code)
      : executable_(executable), code_(code) {}
  const image::Executable &executable() const { return executable_; }

  void execute(const Path &path);

  // Of the path that was executed. What is not known of its registers at first, and of memory, is
  // named by definitions.
  Expressions expressions;
  ExprId target{}; // of the last jump
  std::vector<Condition> conditions;
  bool is_bias(ExprId id) const { return id == bias_; }
  // The bias plus a constant.
  bool is_image_address(ExprId id) const;
  // Of a load: the part of its address that is in the instruction, and in registers that hold a constant; 0 if it
  // is none.
  uint64_t label_of(ExprId load) const;

private:
  struct Stored {
    ExprId address, value;
    unsigned width;
  };
  struct Label {
    ExprId load;
    uint64_t constant; // in the instruction that loads
  };

  void begin(const Constants &before);
  void execute(const PathPiece &piece);
  void execute(const assay_uop &uop, bool taken);
  void forget(VariableSet written);
  // What a register holds: itself, until something else was put there.
  ExprId in(unsigned reg);
  ExprId operand_b(const assay_uop &uop) {
    return has_immediate(uop) ? expressions.constant(static_cast<uint64_t>(uop.imm)) : in(uop.b);
  }
  ExprId operand_c(const assay_uop &uop) {
    return has_immediate(uop) ? expressions.constant(0) : in(uop.c);
  }
  ExprId address(const assay_uop &uop) {
    return expressions.address(in(uop.a), in(uop.b), uop.shift, in(uop.c), uop.i);
  }
  uint64_t constant_of(const assay_uop &uop);
  ExprId load(ExprId from, unsigned width);
  void store(Stored stored) { stores_.push_back(stored); }
  void forget_memory() {
    stores_.clear();
    state_++;
  }
  void after_call(const Instruction &call);
  // Whether an address is the image's own, plus something.
  bool is_image(ExprId address) const;

  const image::Executable &executable_;
  const Code &code_;
  std::array<ExprId, ASSAY_REG_LANES> registers_;  // of vectors none
  std::array<uint64_t, kVariables + 1> changed_{}; // vectors, how often so far
  std::vector<Stored> stores_;
  std::vector<Label> labels_; // in the order of execution
  uint64_t state_ = 0;
  ExprId bias_;
};

} // namespace binary
