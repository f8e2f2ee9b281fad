// A plain interpreter, one step after the other. The same skeletons as C (skeleton_text.cc) are many times faster; this one needs no compiler, and
// can stop anywhere.

#include "trace/skeleton_run.h"

#include "abi/uop_step.h"
#include "base/fail.h"
#include "base/units.h"

#include <algorithm>
#include <cstring>

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;

constexpr size_t kMany = 1 << 16; // accesses that are made before somebody takes them
constexpr uint64_t kMostTurns = uint64_t{1} << 32;
constexpr uint64_t kMostBlocks = uint64_t{1} << 36;
constexpr uint64_t kMostAtEnd = uint64_t{1} << 26; // accesses behind the last byte of a stream

class Run {
public:
  Run(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
      std::vector<profile::Access> &accesses,
      const std::function<void(std::vector<profile::Access> &)> &take)
      : position_(position), skeleton_(*position.skeleton), data_(data), to_the_end_(to_the_end),
        accesses_(accesses), take_(take), v_(position.variables.data()) {}

  uint64_t run() {
    while (block())
      ;
    return at_;
  }

private:
  // False: the skeleton has stopped, or waits.
  bool block() {
    const RunnableSkeleton::Block &block = skeleton_.blocks[position_.block];
    while (position_.step < block.count) {
      if (!step(skeleton_.steps[block.first + position_.step]))
        return false;
      if (accesses_.size() > kMany) {
        made_ += accesses_.size();
        take_(accesses_);
        if (to_the_end_ && made_ > kMostAtEnd) {
          position_.skeleton = nullptr;
          return false;
        }
      }
    }
    uint32_t which = 0;
    switch (block.end) {
    case End::stop: position_.skeleton = nullptr; return false;
    case End::go: break;
    case End::branch: which = v_[block.condition] == 0; break;
    case End::count: which = v_[block.condition] == v_[kLoopEnd]; break;
    case End::logged:
      if (!has(1))
        return false;
      which = std::to_integer<uint8_t>(data_[at_++]) == 0;
      position_.taken.branches++;
      break;
    case End::choose: {
      if (!has(2))
        return false;
      uint16_t chosen;
      std::memcpy(&chosen, data_.data() + at_, sizeof chosen);
      at_ += sizeof chosen;
      position_.taken.branches++;
      if (chosen >= block.choices)
        base::fail("the trace is damaged: in the function at {:#x} a jump goes to the {}th of {}",
                   skeleton_.address, chosen + 1, base::with_noun(block.choices, "place"));
      which = chosen;
      break;
    }
    }
    const uint32_t next = skeleton_.next[block.next + which];
    position_.step = 0;
    if (next == SkeletonBlock::kOut) {
      position_.skeleton = nullptr;
      return false;
    }
    position_.block = next;
    if (++blocks_ > kMostBlocks)
      base::fail("the trace is damaged: the skeleton of the function at {:#x} does not end",
                 skeleton_.address);
    return !waits();
  }

  bool has(unsigned bytes) {
    position_.wanted = bytes;
    return data_.size() - at_ >= bytes;
  }
  // Whether all is used up, and it is not known whether more will come.
  bool waits() const { return at_ == data_.size() && !to_the_end_; }

  uint64_t value(unsigned bytes) {
    uint64_t value = 0;
    std::memcpy(&value, data_.data() + at_, bytes);
    at_ += bytes;
    position_.taken.values++;
    return value;
  }

  uint64_t address(const assay_uop &uop) const {
    const uint64_t a = v_[uop.a];
    if (uop.b == ASSAY_UOP_IMMEDIATE)
      return a + static_cast<uint64_t>(uop.imm);
    return a + (v_[uop.b] << uop.shift) + v_[uop.c] + static_cast<uint64_t>(int64_t{uop.i});
  }

  bool step(const RunnableSkeleton::Step &step) {
    switch (step.kind) {
    case Kind::in:
      if (!has(step.size))
        return false;
      v_[step.uop.dst] = value(step.size);
      position_.step++;
      return !waits();
    case Kind::compute: compute(step.uop); break;
    case Kind::access:
      accesses_.push_back({address(step.uop), step.site, step.size, step.write});
      break;
    case Kind::repeat:
    case Kind::compare: return repeat(step);
    }
    position_.step++;
    return true;
  }

  void compute(const assay_uop &uop) {
    const bool constant = uop.b == ASSAY_UOP_IMMEDIATE;
    const uint64_t a = v_[uop.a], b = constant ? static_cast<uint64_t>(uop.imm) : v_[uop.b];
    if (uop.width == 8 && uop.op == ASSAY_UOP_add)
      v_[uop.dst] = a + b;
    else
      v_[uop.dst] = assay_uop_value(&uop, a, b, constant ? 0 : v_[uop.c]);
  }

  bool repeat(const RunnableSkeleton::Step &first) {
    uint64_t turns = v_[ASSAY_REG_RCX];
    if (first.kind == Kind::compare) {
      if (!has(8))
        return false;
      turns -= value(8);
    }
    if (turns > kMostTurns)
      base::fail("the trace has a string instruction of {} turns: it is damaged", turns);
    const RunnableSkeleton::Block &block = skeleton_.blocks[position_.block];
    uint32_t end = position_.step + 1;
    while (end < block.count && skeleton_.steps[block.first + end].kind == first.kind &&
           skeleton_.steps[block.first + end].site == first.site)
      end++;
    for (uint64_t turn = 0; turn < turns; turn++) {
      for (uint32_t s = position_.step; s < end; s++) {
        const RunnableSkeleton::Step &each = skeleton_.steps[block.first + s];
        accesses_.push_back(
            {address(each.uop) + turn * each.size, each.site, each.size, each.write});
      }
      if (accesses_.size() > kMany)
        take_(accesses_);
    }
    position_.step = end;
    return first.kind == Kind::repeat || !waits();
  }

  SkeletonPosition &position_;
  const RunnableSkeleton &skeleton_;
  const std::span<const std::byte> data_;
  const bool to_the_end_;
  std::vector<profile::Access> &accesses_;
  const std::function<void(std::vector<profile::Access> &)> &take_;
  uint64_t *const v_;
  uint64_t at_ = 0, made_ = 0, blocks_ = 0;
};

} // namespace

RunnableSkeleton::RunnableSkeleton(const Skeleton &skeleton, uint32_t file,
                                   std::vector<profile::AccessSite> &sites) {
  address = skeleton.address;
  for (const SkeletonBlock &from : skeleton.blocks) {
    Block &to = blocks.emplace_back();
    to.first = static_cast<uint32_t>(steps.size());
    to.count = static_cast<uint32_t>(from.steps.size());
    to.end = from.end;
    to.condition = from.condition;
    to.next = static_cast<uint32_t>(next.size());
    to.choices = static_cast<uint32_t>(from.next.size());
    next.insert(next.end(), from.next.begin(), from.next.end());
    for (const SkeletonStep &step : from.steps) {
      if (step.kind >= Kind::access &&
          (sites.empty() || sites.back().offset != step.pc || sites.back().file != file))
        sites.push_back({file, step.pc});
      steps.push_back({step.kind, step.write, step.size,
                       sites.empty() ? 0 : static_cast<uint32_t>(sites.size() - 1), step.uop});
    }
  }
}

uint64_t run_skeleton(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
                      std::vector<profile::Access> &accesses,
                      const std::function<void(std::vector<profile::Access> &)> &take) {
  return Run(position, data, to_the_end, accesses, take).run();
}

} // namespace trace
