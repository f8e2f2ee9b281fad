// The list of losses as a table; a number from a newer version is still a loss and is shown as one.

#include "profile/losses.h"

namespace profile {

LossKind loss_kind(uint32_t number) {
  static constexpr LossKind kKinds[] = {
#define ASSAY_LOSS(name, number, unit, what, remedy) {number, #name, unit, what, remedy},
#include "abi/losses.def"
  };
  for (const LossKind &kind : kKinds)
    if (kind.number == number)
      return kind;
  return {number, "unknown_loss", "events",
          "something is missing that this version has no name for",
          "read the profile with the version of assay that wrote it"};
}

} // namespace profile
