// What instructions of published code do with registers, and where control goes from them.
#pragma once

#include "binary/decoder.h"
#include "values/code_cache.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace values {

struct FlowStep { // a micro-op
  bool is_load = false, is_store = false;
  std::array<uint16_t, 3> from{}; // registers of its operands; of an access, those of the address
  uint16_t to = UINT16_MAX;       // register
};

struct InstructionFlow {
  std::vector<FlowStep> steps;
  uint32_t next = 0;           // where it goes on; 0: not known
  uint32_t target = 0;         // where a direct jump, branch or call goes; 0: not known
  uint64_t target_address = 0; // as linked
  unsigned bytes_to_next = 0;  // 0: it goes on nowhere, or at itself
  bool branches = false;       // to `target` or to `next`
  bool jumps = false;          // to `target`, always
  bool drains_stores = false;  // none of those before it is in flight behind it
};

class CodeFlow {
public:
  explicit CodeFlow(const CodeCache &code) : code_(code) {}
  // Of an instruction of which the bytes are known; empty of others. Valid until the next call.
  const InstructionFlow &at(uint32_t where);

private:
  void look_up_places(uint32_t where, InstructionFlow &flow) const;

  const CodeCache &code_;
  binary::Decoder decoder_;
  std::unordered_map<uint32_t, InstructionFlow> known_; // by where
};

// Where direct jumps, branches and calls lead: of CodeFlow what takes little memory.
class JumpTargets {
public:
  explicit JumpTargets(const CodeCache &code) : code_(code) {}
  // 0: the instruction is none of these, or what is there has no page.
  uint32_t of(uint32_t where);

private:
  uint64_t address_of(uint32_t where); // as linked; 0: none

  const CodeCache &code_;
  binary::Decoder decoder_;
  std::unordered_map<uint32_t, uint64_t> addresses_; // by where, of code that stays
};

} // namespace values
