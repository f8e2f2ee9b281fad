// A plain interpreter, one step after the other, but for loops whose iterations can be told at once
// (steady_loop.h). The same skeletons as C (skeleton_text.cc) are many times faster; this one needs
// no compiler, and can stop anywhere.

#include "trace/skeleton_run.h"

#include "base/fail.h"
#include "base/units.h"

#include <algorithm>
#include <cstring>

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;

constexpr uint32_t kIterationsBefore = 16; // of a loop, before it is asked how many follow
constexpr uint64_t kMaxBlocks = uint64_t{1} << 36;
constexpr uint64_t kMaxAtEnd = uint64_t{1} << 26; // accesses behind the last byte of a stream

class Run {
public:
  Run(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
      AccessOutput &output)
      : position_(position), skeleton_(*position.skeleton), data_(data), to_the_end_(to_the_end),
        output_(output), v_(position.variables) {}

  uint64_t run() {
    while (block())
      ;
    return at_;
  }

private:
  // False: the skeleton has stopped, or waits.
  bool block() {
    const RunnableSkeleton::Block &block = skeleton_.blocks[position_.block];
    if (repeated_ >= kIterationsBefore && block.steady != RunnableSkeleton::kNone &&
        !iterations_at_once(skeleton_.steady_loops[block.steady]))
      return false;
    while (position_.step < block.count) {
      if (!step(skeleton_.steps[block.first + position_.step]))
        return false;
      if (output_.take_if_many() && is_endless())
        return false;
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
    repeated_ = next == position_.block ? repeated_ + 1 : 0;
    position_.block = next;
    count_blocks(1);
    return !waits();
  }

  // Whether what follows the last byte does not end. The skeleton stops then.
  bool is_endless() {
    if (!to_the_end_ || output_.taken() <= kMaxAtEnd)
      return false;
    position_.skeleton = nullptr;
    return true;
  }

  void count_blocks(uint64_t more) {
    if (more > kMaxBlocks || (blocks_ += more) > kMaxBlocks)
      base::fail("the trace is damaged: the skeleton of the function at {:#x} does not end",
                 skeleton_.address);
  }

  // The iterations that are certain, from where one begins.
  bool iterations_at_once(const SteadyLoop &loop) {
    const SteadyLoop::Iterations certain = loop.iterations(v_);
    count_blocks(certain.count);
    if (certain.count && !certain.body.empty())
      output_.loop(certain.body, certain.count);
    if (is_endless())
      return false;
    for (const SteadyLoop::Step &step : certain.steps)
      step.go(certain.count, v_);
    repeated_ = 0;
    return true;
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

  bool step(const RunnableStep &step) {
    switch (step.kind) {
    case Kind::in:
      if (!has(step.size))
        return false;
      v_[step.uop.dst] = value(step.size);
      position_.step++;
      return !waits();
    case Kind::compute: step.compute(v_); break;
    case Kind::access: output_.add({step.address(v_), step.site, step.size, step.write}); break;
    case Kind::repeat:
    case Kind::compare: return repeat(step);
    }
    position_.step++;
    return true;
  }

  bool repeat(const RunnableStep &first) {
    uint64_t times = v_[ASSAY_REG_RCX];
    if (first.kind == Kind::compare) {
      if (!has(8))
        return false;
      times -= value(8);
    }
    check_repetitions(times);
    const RunnableSkeleton::Block &block = skeleton_.blocks[position_.block];
    uint32_t end = position_.step + 1;
    while (end < block.count && skeleton_.steps[block.first + end].kind == first.kind &&
           skeleton_.steps[block.first + end].site == first.site)
      end++;
    auto &body = output_.new_body();
    for (uint32_t s = position_.step; s < end; s++) {
      const RunnableStep &each = skeleton_.steps[block.first + s];
      body.push_back({{each.address(v_), each.site, each.size, each.write}, each.size});
    }
    output_.loop(body, times);
    position_.step = end;
    return first.kind == Kind::repeat || !waits();
  }

  SkeletonPosition &position_;
  const RunnableSkeleton &skeleton_;
  const std::span<const std::byte> data_;
  const bool to_the_end_;
  AccessOutput &output_;
  SkeletonVariables &v_;
  uint32_t repeated_ = 0; // iterations of the block in a row
  uint64_t at_ = 0, blocks_ = 0;
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
  for (uint32_t b = 0; b < blocks.size(); b++)
    find_steady_loop(b);
}

void RunnableSkeleton::find_steady_loop(uint32_t b) {
  Block &block = blocks[b];
  if (block.end != End::count && block.end != End::branch)
    return;
  const bool while_set = next[block.next] == b;
  if (!while_set && (block.end == End::count || next[block.next + 1] != b))
    return;
  const auto loop = SteadyLoop::of(std::span(steps).subspan(block.first, block.count),
                                   {block.end == End::count, while_set, block.condition});
  if (!loop)
    return;
  block.steady = static_cast<uint32_t>(steady_loops.size());
  steady_loops.push_back(*loop);
}

void check_repetitions(uint64_t times) {
  constexpr uint64_t kMax = uint64_t{1} << 47; // more bytes than a process has addresses
  if (times > kMax)
    base::fail("the trace is damaged: it has a string instruction of {} repetitions", times);
}

uint64_t run_skeleton(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
                      AccessOutput &output) {
  return Run(position, data, to_the_end, output).run();
}

} // namespace trace
