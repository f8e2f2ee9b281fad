// The instructions of a routine that are known so far, and where each goes; of the flow graph alone.
#pragma once

#include "binary/flow_graph.h"
#include "binary/program.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace binary {

// Follows control from the addresses that it is given, decodes what it comes to, and remembers where
// blocks begin and where they go. Addresses are those within the routine's ranges.
class CodeWalk {
public:
  static constexpr uint32_t kNone = UINT32_MAX;

  CodeWalk(const Program &program, const Routine &routine, Decoder &decoder, Calls calls);

  const Program &program;
  const Routine &routine;
  Code code; // in the order in which instructions were found

  // Control arrives at `address`, which begins a block; follow() then goes there.
  void reach(uint64_t address);
  void follow();

  // Index in `code` of the instruction that begins at an address, or kNone.
  uint32_t instruction_at(uint64_t address) const;
  bool begins_block(uint64_t address) const;
  // Blocks by address; not those at which nothing could be decoded.
  std::vector<uint64_t> leaders() const;
  // Appends the instructions of the block that begins there, as indexes in `code`.
  void append_block(uint64_t leader, std::vector<uint32_t> &to) const;
  // Where an instruction goes within the routine. nullptr: only to the next one.
  using Targets = ShortList<uint64_t, 2>;
  const Targets *targets_of(uint32_t instruction) const;
  // Adds what an indirect jump goes to, sorted; whether any is new.
  bool add_targets(uint32_t jump, const std::vector<uint64_t> &targets);
  // A branch out of the routine, or running on into the next function: where to.
  std::optional<uint64_t> leaves(uint32_t instruction) const;
  // A branch out of the routine that runs on into the next function as well.
  std::optional<uint64_t> runs_on(uint32_t instruction) const;

  // Indexes of indirect jumps.
  const std::vector<uint32_t> &indirect_jumps() const { return indirect_jumps_; }
  // Whether an instruction begins there when the range is read from its beginning (compilers put
  // nothing but code into functions), or one that is known.
  bool may_begin_instruction(uint64_t address);
  // The first instruction but padding that no way leads to.
  std::optional<uint64_t> unreached();

  WhyNot why_not = WhyNot::understood; // the first thing that went wrong
  uint64_t where = 0;
  void give_up(WhyNot why, uint64_t address);

  // Gives back what instructions and their places take. Nothing is asked of them afterwards.
  void drop_code();

private:
  struct Range {
    uint64_t begin, end;
    uint32_t first; // place of its first byte in the arrays by byte
    std::vector<bool>
        begins; // whether an instruction begins there, read from the beginning; or empty
  };
  uint32_t place_of(uint64_t address) const; // kNone: not in the routine
  uint64_t one(uint64_t address);
  uint64_t flow_of(uint32_t index);
  void go(uint32_t index, uint64_t target);
  uint64_t go_on_after_call(uint32_t index);
  std::optional<uint64_t> slot_of(const Instruction &call) const;
  std::optional<uint64_t> landing_pad_of(uint64_t call) const;
  bool goes_to_trap(const Instruction &instruction) const;
  bool falls_into_another(uint64_t address) const;
  Targets &end_at(uint32_t index);

  Decoder &decoder_;
  Calls calls_;
  std::vector<Range> ranges_;            // by begin
  std::vector<uint32_t> instruction_at_; // by byte
  std::vector<bool> begins_block_;       // by byte
  std::vector<uint32_t> end_of_;         // by instruction: in ends_, or kNone
  std::vector<Targets> ends_;
  std::vector<std::pair<uint32_t, uint64_t>> leaves_; // by instruction
  std::vector<uint64_t> work_;
  std::vector<uint32_t> indirect_jumps_;
};

} // namespace binary
