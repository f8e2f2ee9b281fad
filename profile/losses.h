// What a profile may lack (abi/losses.def), for whoever shows it.
#pragma once

#include <cstdint>

namespace profile {

struct LossKind {
  uint32_t number;
  const char *name;   // key in JSON
  const char *unit;   // what one count is
  const char *what;   // what happened
  const char *remedy; // what to do about it
};

// The kind with this number; one that this version does not know gets a text that says so.
LossKind loss_kind(uint32_t number);

} // namespace profile
