// From bytes to micro-ops.
//
// Source: abi/uops.def for what micro-ops mean; docs/micro-ops.md.
#pragma once

#include "binary/code.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace binary {

// Keeps what it has decoded, in 350 KB: one for many routines, not one for each.
class Decoder {
public:
  Decoder();
  ~Decoder();
  Decoder(Decoder &&) noexcept;

  // Appends the instruction that begins at bytes[0], linked at `address`, with its micro-ops and
  // accesses to `code`. False, and nothing is appended, if there is no valid one. What is valid and
  // not known becomes the micro-op `opaque`.
  bool decode(std::span<const std::byte> bytes, uint64_t address, Code &code);

  // "mov rax, qword ptr [rdi+8]": the instruction at bytes[0] as text, in Intel's syntax; "(bad)"
  // if there is none.
  std::string text(std::span<const std::byte> bytes, uint64_t address) const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

// "addsd" of a Zydis mnemonic.
const char *mnemonic_name(uint16_t mnemonic);

} // namespace binary
