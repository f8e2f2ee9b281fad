// Which definitions the forms of a routine's addresses need, and which of those have to be recorded for
// the addresses to be computed without the program.
#pragma once

#include "binary/forms.h"

#include <cstdint>
#include <vector>

namespace binary {

enum class Need : uint8_t {
  argument, // given by the caller
  computed, // a join of what is recorded anyway, or of constants
  recorded,
};

struct NeededDefinition {
  ValueId value;
  Need need;
};

// One for each definition in `addresses`; copies of a block share theirs.
std::vector<NeededDefinition> needed_definitions(const Ssa &ssa, const Forms &forms,
                                                 const std::vector<ExprId> &addresses);

} // namespace binary
