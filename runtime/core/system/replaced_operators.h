// Operators new and delete that a shared library of the program's replaces.
//
// Ours stand before those of all libraries. Behind them lie ordinarily the C++ library's, which only call malloc and free, as
// ours do; but where a library replaces some ([new.delete]), the program must get these.
#pragma once

#include <stddef.h>

namespace assay {

struct ReplacedOperators {
#define ASSAY_INTERPOSED(name)
#define ASSAY_INTERPOSED_DYNAMIC(name)
#define ASSAY_INTERPOSED_NEW(name, parameters, arguments) void *(*name)parameters;
#define ASSAY_INTERPOSED_DELETE(name, parameters, arguments) void(*name) parameters;
#include "abi/interposed.def"
};

// Null: not replaced. Filled by look_for_replaced_operators().
extern constinit ReplacedOperators replaced_operators;

enum : unsigned char { kOperatorsNotLookedFor, kOperatorsNotReplaced, kOperatorsReplaced };
extern constinit unsigned char operators_state; // one of them

// By the first operator that is called: before that, a C program's process may not have a C++ library. Returns the state.
unsigned char look_for_replaced_operators();

inline bool are_operators_replaced() {
  unsigned char state = __atomic_load_n(&operators_state, __ATOMIC_ACQUIRE);
  if (__builtin_expect(state == kOperatorsNotLookedFor, 0))
    state = look_for_replaced_operators();
  return __builtin_expect(state == kOperatorsReplaced, 0);
}

} // namespace assay
