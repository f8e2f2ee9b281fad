// Gathers and scatters: an access for each element, at base + (index << scale) + displacement, if the
// mask says so. AVX2's mask is the top bits of a vector, AVX-512's a k register; what was done is cleared in
// it, and so all of it at the end.

#include "binary/lift_lanes.h"

#include <optional>

namespace binary {
namespace {

struct Kind {
  unsigned index, element; // bytes
  bool scatters = false;
};

std::optional<Kind> kind_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
  case ZYDIS_MNEMONIC_VGATHERDPS:
  case ZYDIS_MNEMONIC_VPGATHERDD: return Kind{4, 4};
  case ZYDIS_MNEMONIC_VGATHERDPD:
  case ZYDIS_MNEMONIC_VPGATHERDQ: return Kind{4, 8};
  case ZYDIS_MNEMONIC_VGATHERQPS:
  case ZYDIS_MNEMONIC_VPGATHERQD: return Kind{8, 4};
  case ZYDIS_MNEMONIC_VGATHERQPD:
  case ZYDIS_MNEMONIC_VPGATHERQQ: return Kind{8, 8};
  case ZYDIS_MNEMONIC_VSCATTERDPS:
  case ZYDIS_MNEMONIC_VPSCATTERDD: return Kind{4, 4, true};
  case ZYDIS_MNEMONIC_VSCATTERDPD:
  case ZYDIS_MNEMONIC_VPSCATTERDQ: return Kind{4, 8, true};
  case ZYDIS_MNEMONIC_VSCATTERQPS:
  case ZYDIS_MNEMONIC_VPSCATTERQD: return Kind{8, 4, true};
  case ZYDIS_MNEMONIC_VSCATTERQPD:
  case ZYDIS_MNEMONIC_VPSCATTERQQ: return Kind{8, 8, true};
  default: return std::nullopt;
  }
}

// Element number `number` of a vector whose lane 0 is `vector`.
Reg element_of(Lift &lift, Reg vector, unsigned number, unsigned bytes) {
  unsigned in_lane = 8 / bytes;
  return lift.make3(ASSAY_UOP_lane_get, bytes, static_cast<Reg>(vector + number / in_lane),
                    ASSAY_REG_ZERO, ASSAY_REG_ZERO, static_cast<int32_t>(number % in_lane));
}

} // namespace

bool lift_gathers(Lift &lift) {
  auto kind = kind_of(lift.decoded.mnemonic);
  if (!kind || lift.decoded.address_width != 64)
    return false;
  unsigned memory = kind->scatters ? 0 : 1, vector = kind->scatters ? 1 : 0;
  bool is_vex = lift.decoded.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
  const auto &mem = lift.operand(memory).mem;
  if (mem.type != ZYDIS_MEMOP_TYPE_VSIB || (!is_vex && !lift.mask))
    return false;
  Address address = lift.address_of(lift.operand(memory));
  Reg data = register_of(lift.operand(vector).reg.value), index = register_of(mem.index);
  Reg mask = is_vex ? register_of(lift.operand(2).reg.value) : lift.mask;
  address.shift = static_cast<uint8_t>(mem.scale == 8   ? 3
                                       : mem.scale == 4 ? 2
                                       : mem.scale == 2 ? 1
                                                        : 0);
  unsigned wider = kind->index > kind->element ? kind->index : kind->element;
  unsigned count = lift.decoded.avx.vector_length / 8u / wider;
  for (unsigned i = 0; i < count; i++) {
    unsigned mark = lift.mark_temporaries();
    Reg wanted = is_vex ? element_of(lift, mask, i, kind->element) : mask;
    wanted =
        lift.make(ASSAY_UOP_shr, 8, value(wanted), Operand::of(is_vex ? 8 * kind->element - 1 : i));
    lift.emit(ASSAY_UOP_and, 8, wanted, value(wanted), Operand::of(1));
    address.index = element_of(lift, index, i, kind->index);
    if (kind->index == 4)
      lift.emit3(ASSAY_UOP_sign_extend, 8, address.index, address.index, ASSAY_REG_ZERO,
                 ASSAY_REG_ZERO, 32);
    lift.access_masked(kind->element, kind->scatters);
    Reg place = lift.temporary();
    lift.lea(place, 8, address);
    Reg element = element_of(lift, data, i, kind->element);
    if (kind->scatters) {
      lift.emit3(ASSAY_UOP_store_if, kind->element, element, place, wanted, ASSAY_REG_ZERO);
    } else {
      Reg read = lift.temporary();
      lift.emit3(ASSAY_UOP_load_if, kind->element, read, place, wanted, ASSAY_REG_ZERO);
      lift.emit3(ASSAY_UOP_select, 8, element, read, element, wanted);
      Reg lane = static_cast<Reg>(data + i * kind->element / 8);
      lift.emit3(ASSAY_UOP_lane_put, kind->element, lane, lane, element, ASSAY_REG_ZERO,
                 static_cast<int32_t>(i % (8 / kind->element)));
    }
    lift.release_temporaries(mark);
  }
  if (is_vex)
    lift.emit(ASSAY_UOP_lane_clear, 8, mask, {});
  else
    lift.emit(ASSAY_UOP_copy, 8, mask, Operand::of(0));
  unsigned written = count * kind->element; // bytes
  if (kind->scatters)
    return true;
  if (written < 64)
    lift.emit(ASSAY_UOP_lane_clear, 8, static_cast<Reg>(data + written / 8), {});
  return true;
}

} // namespace binary
