// AES: rounds on blocks of 16 bytes.

#include "binary/lift_lanes.h"

namespace binary {
namespace {

bool round(Lift &lift, assay_uop_code op, bool last) {
  unsigned first = first_source(lift, 2);
  LanesRead state(lift, first), key(lift, first + 1);
  return rearrange(lift, 8, [&](unsigned lane) {
    Reg half = lift.temporary();
    lift.emit3(op, 8, half, state[lane & ~1u], state[lane | 1], ASSAY_REG_ZERO,
               static_cast<int32_t>(lane & 1), last);
    lift.emit(ASSAY_UOP_xor, 8, half, value(half), value(key[lane]));
    return half;
  });
}

} // namespace

bool lift_aes(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_AESENC:
  case ZYDIS_MNEMONIC_VAESENC: return round(lift, ASSAY_UOP_aes_encrypt, false);
  case ZYDIS_MNEMONIC_AESENCLAST:
  case ZYDIS_MNEMONIC_VAESENCLAST: return round(lift, ASSAY_UOP_aes_encrypt, true);
  case ZYDIS_MNEMONIC_AESDEC:
  case ZYDIS_MNEMONIC_VAESDEC: return round(lift, ASSAY_UOP_aes_decrypt, false);
  case ZYDIS_MNEMONIC_AESDECLAST:
  case ZYDIS_MNEMONIC_VAESDECLAST: return round(lift, ASSAY_UOP_aes_decrypt, true);
  case ZYDIS_MNEMONIC_AESIMC:
  case ZYDIS_MNEMONIC_VAESIMC: {
    LanesRead from(lift, 1);
    return rearrange(lift, 8, [&](unsigned lane) {
      return lift.make(ASSAY_UOP_aes_columns, 8, value(from[lane]));
    });
  }
  case ZYDIS_MNEMONIC_AESKEYGENASSIST:
  case ZYDIS_MNEMONIC_VAESKEYGENASSIST: {
    LanesRead from(lift, 1);
    auto constant = static_cast<int32_t>(lift.constant(2) & 0xff);
    return rearrange(lift, 8, [&](unsigned lane) {
      return lift.make3(ASSAY_UOP_aes_words, 8, from[lane], ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                        constant);
    });
  }
  default: return false;
  }
}

} // namespace binary
