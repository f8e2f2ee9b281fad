// Where the return address of a function lies while one of its instructions is executed, by its unwind tables.
#pragma once

#include "image/executable.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace values {

// In memory at the register's value (enum assay_uop_register) + offset.
struct CallerRule {
  uint16_t reg = 0;
  int32_t offset = 0;
  friend bool operator==(const CallerRule &, const CallerRule &) = default;
};

class CallerRules {
public:
  // Keeps the reference.
  explicit CallerRules(const image::Executable &executable);
  // Before the instruction at a linked address is executed. Nothing where tables do not cover it,
  // or say it in a way that only a debugger follows (an expression), and of frames that the kernel
  // has made for a signal.
  std::optional<CallerRule> at(uint64_t address) const;

private:
  std::vector<const image::UnwindRange *> ranges_; // by their begin
};

} // namespace values
