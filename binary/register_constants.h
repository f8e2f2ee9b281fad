// What general registers hold where a path begins, as far as they hold the same constant whichever
// way control came.
#pragma once

#include "binary/code.h"

#include <array>
#include <cstdint>

namespace binary {

struct Constant {
  enum Kind : uint8_t {
    any, // nothing came there yet
    known,
    address, // a linked one plus the bias
    varies
  } kind = any;
  uint64_t value = 0;
  bool operator==(const Constant &) const = default;
};
using Constants = std::array<Constant, 16>;
// What they hold after an instruction.
void execute(const Code &code, const Instruction &instruction, Constants &constants);

} // namespace binary
