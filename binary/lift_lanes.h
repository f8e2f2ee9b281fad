// Operands and results of vector instructions, lane by lane; of the decoder alone.
//
//   legacy   dst = op(dst, src)      the lanes above the operand's stay
//   VEX      dst = op(src1, src2)    they become 0
//   EVEX     the same, and elements whose bit in the mask is clear stay or become 0
#pragma once

#include "binary/lift.h"

#include <span>

namespace binary {

constexpr unsigned kMaxLanes = 8;

// Lanes of 8 bytes of an operand; 1 for smaller ones.
inline unsigned lane_count(const ZydisDecodedOperand &operand) {
  return operand.size <= 64 ? 1 : operand.size / 64;
}

// An operand that is read; memory is loaded at once.
class LanesRead {
public:
  LanesRead(Lift &lift, unsigned index);
  LanesRead(Lift &lift, unsigned index,
            unsigned size); // only so many bytes, from memory or register
  Reg operator[](unsigned lane) const { return lanes_[lane]; }

private:
  void load(Lift &lift, const ZydisDecodedOperand &operand, unsigned size);
  Reg lanes_[kMaxLanes] = {};
};

// Operand 0 as a result: a vector register, or memory.
class LanesWritten {
public:
  // Elements of so many bytes have a bit of the mask each.
  LanesWritten(Lift &lift, unsigned element);

  unsigned count() const { return count_; }
  // Where the result of a lane may be computed while later lanes are still read.
  Reg place(unsigned lane);
  void put(unsigned lane, Reg result);
  // Lanes that all were computed elsewhere.
  void put_all(std::span<const Reg> results);
  // After the last: clears what is above, unless the instruction is a legacy one.
  void finish(unsigned lanes);
  void finish() { finish(count_); }

private:
  void store_masked(unsigned lane, Reg result);
  Lift &lift_;
  unsigned element_, count_;
  bool to_memory_;
  Reg base_ = 0;
  Address address_;
};

// haddpd, phaddd: of each block, `op` of neighbouring elements of operand 1 and then of operand 2.
bool add_neighbours(Lift &lift, assay_uop_code op, unsigned element);

// The operand that is the first source: 0 itself in the legacy forms of `sources` sources.
inline unsigned first_source(const Lift &lift, unsigned sources) {
  return lift.operand_count > sources ? 1 : 0;
}

// Operand 0 as a result each of whose lanes is made of that lane of the sources alone: make(place, lane).
template <class Make> bool lane_by_lane(Lift &lift, unsigned element, Make make) {
  LanesWritten to(lift, element);
  for (unsigned lane = 0; lane < to.count(); lane++) {
    unsigned mark = lift.mark_temporaries();
    Reg place = to.place(lane);
    make(place, lane);
    to.put(lane, place);
    lift.release_temporaries(mark);
  }
  to.finish();
  return true;
}

// Operand 0 as a result whose lanes may be made of any lanes of the sources: make(lane) for each, and
// only then are they put.
template <class Make> bool rearrange(Lift &lift, unsigned element, Make make) {
  LanesWritten to(lift, element);
  Reg results[kMaxLanes];
  for (unsigned lane = 0; lane < to.count(); lane++) {
    Reg made = make(lane);
    bool is_temporary = made >= ASSAY_REG_TEMPORARIES && made < ASSAY_REG_LANES;
    results[lane] = is_temporary ? made : lift.make(ASSAY_UOP_copy, 8, value(made));
  }
  to.put_all({results, to.count()});
  to.finish();
  return true;
}

} // namespace binary
