// Where r11 is free for a snippet. The ABI gives it to callees for themselves; but compilers know
// which registers a function of the same file leaves alone, and keep values in those across its
// calls (gcc's -fipa-ra), and assembly may pass something in it.
#pragma once

#include "binary/decoder.h"
#include "binary/liveness.h"
#include "binary/program.h"
#include "trace/instructions.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace trace {

inline constexpr uint8_t kR11 = ASSAY_REG_R8 + 3; // its number

class R11 {
public:
  R11() = default;
  R11(const binary::Program &program, const InstructionDecoder &decoder);

  // What is known of r11 in the routine that begins at an address; this object must outlive the answer.
  binary::Liveness::Known known(uint64_t routine) const;

private:
  struct Function;
  using Functions = std::vector<Function>;
  Function look_at(const binary::Program &program, const InstructionDecoder &decoder,
                   const image::CodeRange &range);
  template <class Act>
  bool look_into(const binary::Program &program, const binary::Routine *routine,
                 binary::Decoder &lifts, Act act) const;
  std::vector<uint64_t> those_who_take(const binary::Program &program,
                                       const std::vector<uint64_t> &functions,
                                       binary::Decoder &lifts) const;
  void add_those_who_jump_anywhere(const binary::Program &program, const Functions &functions,
                                   binary::Decoder &lifts);
  void add_takers(const Functions &functions);
  std::unordered_set<uint64_t> losers_of(const Functions &functions) const;
  void find_keepers(const binary::Program &program, const Functions &functions,
                    binary::Decoder &lifts);

  std::unordered_set<uint64_t> known_;  // functions of the file
  std::unordered_set<uint64_t> takers_; // those that may read it as they are given it
  std::unordered_set<uint64_t>
      given_; // calls through pointers before which it is written, and not read; jumps that may lead to a taker
  std::unordered_set<uint64_t> constant_calls_; // calls of what was computed from constants
  std::unordered_set<uint64_t>
      keepers_; // routines behind which somebody may read what they leave in it
};

} // namespace trace
