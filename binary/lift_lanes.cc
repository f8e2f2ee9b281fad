// No micro-op is wider than 8 bytes, so a vector is up to eight registers, its lanes. An operand in
// a register is not copied: LanesRead names the lanes themselves. The trap: a lane of the result
// that is put too early overwrites a source that is still to be read. So lane_by_lane() is only for
// results of which each lane is made of that lane of the sources; rearrange() makes all lanes
// first, and then puts them.
//
// A masked store becomes a conditional store for each element, because an element whose bit is
// clear must not be accessed: there may be no memory. A broadcast operand is loaded once, and all
// lanes name that one register.

#include "binary/lift_lanes.h"

namespace binary {

LanesRead::LanesRead(Lift &lift, unsigned index)
    : LanesRead(lift, index, lift.operand(index).size / 8) {}

LanesRead::LanesRead(Lift &lift, unsigned index, unsigned size) {
  const ZydisDecodedOperand &operand = lift.operand(index);
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    load(lift, operand, size);
    return;
  }
  Reg base = register_of(operand.reg.value);
  bool is_vector = base >= ASSAY_REG_LANES && base < ASSAY_REG_X87;
  for (unsigned lane = 0; lane < kMaxLanes; lane++)
    lanes_[lane] = static_cast<Reg>(is_vector ? base + lane : base);
}

void LanesRead::load(Lift &lift, const ZydisDecodedOperand &operand, unsigned size) {
  Address address = lift.address_of(operand);
  if (lift.decoded.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
      !lift.decoded.avx.broadcast.is_static) {
    unsigned element = operand.element_size / 8u;
    lift.access(element, false);
    Reg one = lift.temporary();
    lift.load(one, element, address);
    if (element < 8)
      lift.emit(ASSAY_UOP_lane_repeat, element, one, value(one));
    for (Reg &lane : lanes_)
      lane = one;
    return;
  }
  lift.access(size, false);
  for (unsigned lane = 0; lane * 8 < size && lane < kMaxLanes; lane++) {
    lanes_[lane] = lift.temporary();
    lift.load(lanes_[lane], size >= 8 ? 8 : size, address);
    address.offset += 8;
  }
}

LanesWritten::LanesWritten(Lift &lift, unsigned element)
    : lift_(lift), element_(element), count_(lane_count(lift.operand(0))),
      to_memory_(lift.is_memory(0)) {
  if (!to_memory_) {
    base_ = register_of(lift.operand(0).reg.value);
    return;
  }
  // The address once; every lane and element is at a distance from it.
  address_.base = lift.temporary();
  Address whole = lift.address_of(lift.operand(0));
  if (lift.mask)
    lift.access_masked(lift.operand(0).size / 8, true);
  else
    lift.access(lift.operand(0).size / 8, true);
  lift.lea(address_.base, 8, whole);
}

Reg LanesWritten::place(unsigned lane) {
  return to_memory_ || lift_.mask ? lift_.temporary() : static_cast<Reg>(base_ + lane);
}

void LanesWritten::store_masked(unsigned lane, Reg result) {
  unsigned bytes = lift_.operand(0).size / 8;
  for (unsigned i = 0; i < 8 / element_ && 8 * lane + i * element_ < bytes; i++) {
    unsigned mark = lift_.mark_temporaries();
    unsigned number = lane * 8 / element_ + i;
    Reg bit = lift_.make(ASSAY_UOP_shr, 8, value(lift_.mask), Operand::of(number));
    lift_.emit(ASSAY_UOP_and, 8, bit, value(bit), Operand::of(1));
    Reg element = lift_.make3(ASSAY_UOP_lane_get, element_, result, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                              static_cast<int32_t>(i));
    lift_.emit3(ASSAY_UOP_store_if, element_, element, address_.base, bit, ASSAY_REG_ZERO,
                static_cast<int32_t>(8 * lane + i * element_));
    lift_.release_temporaries(mark);
  }
}

void LanesWritten::put(unsigned lane, Reg result) {
  if (to_memory_ && lift_.mask) {
    store_masked(lane, result);
    return;
  }
  if (to_memory_) {
    Address address = address_;
    address.offset = static_cast<int32_t>(8 * lane);
    unsigned bytes = lift_.operand(0).size / 8;
    lift_.store(result, bytes < 8 ? bytes : 8, address);
    return;
  }
  Reg to = static_cast<Reg>(base_ + lane);
  if (lift_.mask) {
    Reg chosen = lift_.make3(ASSAY_UOP_lane_mask, element_, lift_.mask, ASSAY_REG_ZERO,
                             ASSAY_REG_ZERO, static_cast<int32_t>(lane * 8 / element_));
    lift_.emit3(ASSAY_UOP_lane_merge, 8, to, lift_.zeroing ? Reg{ASSAY_REG_ZERO} : to, result,
                chosen);
  } else if (to != result) {
    lift_.emit(ASSAY_UOP_copy, 8, to, value(result));
  }
}

void LanesWritten::put_all(std::span<const Reg> results) {
  for (unsigned lane = 0; lane < results.size(); lane++)
    put(lane, results[lane]);
}

void LanesWritten::finish(unsigned lanes) {
  if (!to_memory_ && lift_.decoded.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
      lanes < kMaxLanes)
    lift_.emit(ASSAY_UOP_lane_clear, 8, static_cast<Reg>(base_ + lanes), {});
}

bool add_neighbours(Lift &lift, assay_uop_code op, unsigned element) {
  unsigned first = first_source(lift, 2);
  LanesRead a(lift, first), b(lift, first + 1);
  return rearrange(lift, element, [&](unsigned lane) {
    const LanesRead &from = lane & 1 ? b : a;
    Reg low = from[lane & ~1u], high = from[lane | 1], even = low, odd = high;
    if (element == 4) {
      even = lift.make3(ASSAY_UOP_lane_shuffle32, 8, low, high, ASSAY_REG_ZERO);
      odd = lift.make3(ASSAY_UOP_lane_shuffle32, 8, low, high, ASSAY_REG_ZERO, 3);
    }
    return lift.make(op, element, value(even), value(odd));
  });
}

} // namespace binary
