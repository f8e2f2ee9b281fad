// Where the indirect jumps of a routine go; of the flow graph alone.
#pragma once

#include "binary/code_walk.h"
#include "binary/jump_tables.h"

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace binary {

struct IndirectJump {
  uint32_t instruction = 0; // in CodeWalk::code
  JumpKind kind = JumpKind::unknown;
  JumpTable table;
};

// Inspects all indirect jumps that were met, by the ways to them that are known, and lets the walk go
// on where they lead; in turn, until nothing is new.
class IndirectJumps {
public:
  // `tables`: addresses at which tables are known to begin.
  IndirectJumps(CodeWalk &walk, std::set<uint64_t> tables)
      : walk_(walk), table_addresses_(std::move(tables)) {}

  // Whether there are new targets.
  bool resolve();

  std::map<uint64_t, IndirectJump> jumps; // by address
  // Where jumps through pointers may stay within the routine: sorted.
  const std::vector<uint64_t> &labels() const { return labels_; }
  const std::set<uint64_t> &tables() const { return table_addresses_; }
  // Whether a table was read beyond where it now ends, or beyond where another begins.
  bool have_read_too_far() const;
  // Addresses within the routine, other than its entries, that its instructions make.
  std::vector<uint64_t> made_labels() const;

private:
  struct Piece { // a block as far as it is known
    uint64_t leader;
    uint32_t first, end; // its instructions: instructions_[first], …
    NodeList predecessors;
    bool dispatched = false; // a label
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void find_pieces();
  std::span<const uint32_t> instructions_of(const Piece &piece) const {
    return std::span(instructions_).subspan(piece.first, piece.end - piece.first);
  }
  const Instruction &last_of(const Piece &piece) const {
    return walk_.code.instructions[instructions_[piece.end - 1]];
  }
  uint32_t piece_at(uint64_t leader) const;
  template <class Visit> void successors_of(const Piece &piece, Visit visit) const;
  void find_constants();
  bool find_ways(unsigned blocks);
  Path path() const;
  ResolvedJump resolve(uint32_t piece, SymbolicPath &way);
  bool is_jump_target(uint64_t target) const;
  bool is_likely_target(uint64_t address);
  bool is_hole(uint64_t target) const;
  std::vector<uint64_t> pointed_labels();
  bool goes_to_labels(const Instruction &jump) const;

  CodeWalk &walk_;
  std::set<uint64_t> table_addresses_;
  std::vector<Piece> pieces_;          // by leader
  std::vector<uint32_t> instructions_; // in CodeWalk::code, piece by piece
  std::vector<Constants> constants_;   // by piece, at its beginning
  std::vector<uint64_t> labels_;
  // Of the jump that is inspected: the ways to it, and the one that is gone back.
  std::vector<Path> ways_;
  std::vector<uint32_t> back_;
};

} // namespace binary
