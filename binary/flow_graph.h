// The control-flow graph of a routine.
#pragma once

#include "binary/code.h"
#include "binary/program.h"
#include "binary/short_list.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace binary {

// Why a routine is not understood. What is not understood stays whole and untouched.
enum class WhyNot : uint8_t {
  understood,
  undecodable,     // control reaches bytes that are no instruction
  leaves_code,     // control runs off the end of the routine
  unresolved_jump, // an indirect jump whose targets are not known
  unreached_code,  // code that no way leads to, and a jump or a pointer that could
  unentered,       // a sweep has found it, and nothing known leads to its begin
  half_known,      // an instruction that goes elsewhere, or accesses more, than is known of it
  too_large,       // more blocks than are looked at
};
// "understood", "undecodable" …, and a sentence that says what it means.
const char *why_not_name(WhyNot why);
const char *why_not_meaning(WhyNot why);

struct Block {
  static constexpr uint64_t kStays = UINT64_MAX;
  uint32_t first = 0, count = 0; // in code.instructions; none of a dispatch
  NodeList successors, predecessors;
  // Where a branch goes outside of the routine, or the routine that it runs on into.
  uint64_t leaves = kStays;
  // Of a branch that leaves: where it goes if it is not taken, if that is outside too.
  uint64_t runs_on = kStays;

  // Between all jumps through pointers and all labels whose address is taken, of which there may be
  // thousands each.
  bool is_dispatch() const { return count == 0; }
};

// An indirect jump through a table of the compiler.
struct JumpTable {
  uint64_t jump = 0;    // the instruction
  uint64_t address = 0; // of the first entry
  uint32_t entries = 0;
  uint8_t entry_bytes = 0;
  bool bounded = false; // by a comparison or a mask; else it was read as far as it made sense
  std::vector<uint64_t> targets;  // sorted, each once
  std::vector<uint64_t> in_order; // by entry; kHole where no index leads
  static constexpr uint64_t kHole = UINT64_MAX;
};

struct FlowGraph {
  Code code;
  std::vector<Block> blocks;
  NodeList entries; // blocks; the first is that of the routine's address
  std::vector<JumpTable> tables;
  std::vector<uint64_t>
      tail_jumps; // indirect jumps that leave the routine, as tail calls do; sorted
  WhyNot why_not = WhyNot::understood;
  uint64_t where = 0; // the address at which it was not understood

  std::span<const Instruction> instructions_of(const Block &block) const {
    return {code.instructions.data() + block.first, block.count};
  }
  bool is_tail_jump(const Instruction &instruction) const {
    return instruction.flow == Flow::indirect_jump &&
           std::binary_search(tail_jumps.begin(), tail_jumps.end(), instruction.address);
  }
  const Instruction &last_of(const Block &block) const {
    return code.instructions[block.first + block.count - 1];
  }
};

// Whether what calls keep is asked of Program, which looks into the callees, or taken from the ABI.
enum class Calls : uint8_t { looked_into, believed };

// The graph of a routine, or as much of it as there is before something is not understood. Blocks
// that no entry reaches are not there.
FlowGraph flow_graph(const Program &program, const Routine &routine, Decoder &decoder,
                     Calls calls = Calls::looked_into);

} // namespace binary
