// An interpreter. Where more is logged than a block takes, the block runs at once; else one step after the
// other, so that it can stop anywhere. Of loops whose iterations can be told (steady_loop.h) all
// are told at once. The same skeletons as C (skeleton_text.cc) are faster; this one needs no compiler.

#include "trace/skeleton_run.h"

#include "abi/trace_ring.h"
#include "base/fail.h"
#include "base/units.h"

#include <algorithm>
#include <cstring>

namespace trace {
namespace {

using Op = RunnableStep::Op;
using End = SkeletonBlock::End;

constexpr uint32_t kIterationsBefore = 16; // of a loop, before it is asked how many follow
constexpr uint64_t kMaxBlocks = uint64_t{1} << 36;
constexpr uint64_t kMaxAtEnd = uint64_t{1} << 26; // accesses behind the last byte of a stream

static_assert(ASSAY_RING_BUFFER_BYTES < RunnableSkeleton::kNone); // all that is given at once

class Run {
public:
  Run(SkeletonPosition &position, std::span<const std::byte> data, bool to_the_end,
      AccessOutput &output)
      : position_(position), skeleton_(*position.skeleton), data_(data), to_the_end_(to_the_end),
        output_(output), v_(position.variables), taken_before_(output.taken()) {}

  uint64_t run() {
    while (block())
      ;
    return at_;
  }

private:
  // False: the skeleton has stopped, or waits.
  bool block() {
    const RunnableSkeleton::Block &block = skeleton_.blocks[position_.block];
    if (is_steady(block) && !iterations_at_once(skeleton_.steady_loops[block.steady]))
      return false;
    if (position_.step == 0 && runs_at_once(block))
      return at_once();
    while (position_.step < block.count)
      if (!step(skeleton_.steps[block.first + position_.step]))
        return false;
    if (is_endless() || (is_end_logged(block) && !has(end_bytes(block))))
      return false;
    go_on(next_of(block, data_.data() + at_));
    if (is_end_logged(block)) {
      at_ += end_bytes(block);
      position_.taken.branches++;
    }
    return position_.skeleton && !waits();
  }

  bool is_steady(const RunnableSkeleton::Block &block) const {
    return repeated_ >= kIterationsBefore && block.steady != RunnableSkeleton::kNone;
  }
  // Whether bytes are left behind all that it takes: then it neither stops nor waits within.
  bool runs_at_once(const RunnableSkeleton::Block &block) const {
    return block.bytes < data_.size() - at_;
  }

  // Blocks from the current one on, as long as they run at once. This is where the time goes: what
  // it uses is local, so that it stays in registers.
  bool at_once() {
    const std::byte *in = data_.data() + at_;
    uint64_t *const v = v_.data();
    uint64_t values = 0, branches = 0;
    const RunnableSkeleton::Block *block = &skeleton_.blocks[position_.block];
    do {
      profile::Access *out = output_.room_for(block->accesses);
      const RunnableStep *step = skeleton_.steps.data() + block->first;
      for (const RunnableStep *const end = step + block->count; step != end; step++) {
        const assay_uop &uop = step->uop;
        switch (step->op) {
        case Op::in1: v[uop.dst] = taken<uint8_t>(in); break;
        case Op::in2: v[uop.dst] = taken<uint16_t>(in); break;
        case Op::in4: v[uop.dst] = taken<uint32_t>(in); break;
        case Op::in8: v[uop.dst] = taken<uint64_t>(in); break;
        case Op::copy: v[uop.dst] = v[uop.a]; break;
        case Op::add: v[uop.dst] = v[uop.a] + v[uop.b]; break;
        case Op::add_constant: v[uop.dst] = v[uop.a] + static_cast<uint64_t>(uop.imm); break;
        case Op::copy32: v[uop.dst] = static_cast<uint32_t>(v[uop.a]); break;
        case Op::add_constant32:
          v[uop.dst] = static_cast<uint32_t>(v[uop.a] + static_cast<uint64_t>(uop.imm));
          break;
        case Op::lea: v[uop.dst] = step->sum(v_); break;
        case Op::lea32: v[uop.dst] = static_cast<uint32_t>(step->sum(v_)); break;
        case Op::sign_extend:
          v[uop.dst] = static_cast<uint64_t>(static_cast<int64_t>(v[uop.a] << uop.i) >> uop.i);
          break;
        case Op::compute: step->compute(v_); break;
        case Op::access_at:
          *out++ = {v[uop.a] + static_cast<uint64_t>(uop.imm), step->site, step->size, step->write};
          break;
        case Op::access: *out++ = {step->sum(v_), step->site, step->size, step->write}; break;
        case Op::repeat:
        case Op::compare: // such blocks do not run at once
        default: __builtin_unreachable();
        }
      }
      output_.advance(block->accesses);
      values += block->values;
      branches += is_end_logged(*block);
      const uint32_t next = next_of(*block, in);
      in += end_bytes(*block);
      at_ = static_cast<uint64_t>(in - data_.data());
      go_on(next);
      if (!position_.skeleton)
        break;
      block = &skeleton_.blocks[next];
    } while (runs_at_once(*block) && !is_steady(*block));
    position_.taken.values += values;
    position_.taken.branches += branches;
    return position_.skeleton;
  }

  template <class T> static uint64_t taken(const std::byte *&in) {
    T value;
    std::memcpy(&value, in, sizeof value);
    in += sizeof value;
    return value;
  }

  static bool is_end_logged(const RunnableSkeleton::Block &block) {
    return block.end == End::logged || block.end == End::choose;
  }
  static unsigned end_bytes(const RunnableSkeleton::Block &block) {
    return block.end == End::logged ? 1 : block.end == End::choose ? 2 : 0;
  }

  // SkeletonBlock::kOut: the skeleton stops. `logged`: what its end takes.
  [[gnu::always_inline]] uint32_t next_of(const RunnableSkeleton::Block &block,
                                          const std::byte *logged) const {
    uint32_t which = 0;
    switch (block.end) {
    case End::stop: return SkeletonBlock::kOut;
    case End::go: break;
    case End::branch: which = v_[block.condition] == 0; break;
    case End::count: which = v_[block.condition] == v_[kLoopEnd]; break;
    case End::logged: which = *logged == std::byte{0}; break;
    case End::choose:
      which = static_cast<uint32_t>(taken<uint16_t>(logged));
      if (which >= block.choices)
        base::fail("the trace is damaged: in the function at {:#x} a jump goes to the {}th of {}",
                   skeleton_.address, which + 1, base::with_noun(block.choices, "place"));
      break;
    }
    return skeleton_.next[block.next + which];
  }

  void go_on(uint32_t next) {
    position_.step = 0;
    if (next == SkeletonBlock::kOut) {
      position_.skeleton = nullptr;
      return;
    }
    repeated_ = next == position_.block ? repeated_ + 1 : 0;
    position_.block = next;
    count_blocks(1);
  }

  // Whether what follows the last byte does not end. The skeleton stops then.
  bool is_endless() {
    if (!to_the_end_ || output_.taken() - taken_before_ <= kMaxAtEnd)
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
    if (step.op >= Op::repeat)
      return repeat(step);
    if (step.is_access())
      output_.add({step.address(v_), step.site, step.size, step.write});
    else if (step.is_computation())
      step.compute(v_);
    else if (!has(step.size))
      return false;
    else
      v_[step.uop.dst] = value(step.size);
    position_.step++;
    return step.op >= Op::compute || !waits();
  }

  bool repeat(const RunnableStep &first) {
    uint64_t times = v_[ASSAY_REG_RCX];
    if (first.op == Op::compare) {
      if (!has(8))
        return false;
      times -= value(8);
    }
    check_repetitions(times);
    const RunnableSkeleton::Block &block = skeleton_.blocks[position_.block];
    uint32_t end = position_.step + 1;
    while (end < block.count && skeleton_.steps[block.first + end].op == first.op &&
           skeleton_.steps[block.first + end].site == first.site)
      end++;
    auto &body = output_.new_body();
    for (uint32_t s = position_.step; s < end; s++) {
      const RunnableStep &each = skeleton_.steps[block.first + s];
      body.push_back({{each.address(v_), each.site, each.size, each.write}, each.size});
    }
    output_.loop(body, times);
    position_.step = end;
    return first.op == Op::repeat || !waits();
  }

  SkeletonPosition &position_;
  const RunnableSkeleton &skeleton_;
  const std::span<const std::byte> data_;
  const bool to_the_end_;
  AccessOutput &output_;
  SkeletonVariables &v_;
  const uint64_t taken_before_; // by the output
  uint32_t repeated_ = 0;       // iterations of the block in a row
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
      if (step.kind >= SkeletonStep::Kind::access &&
          (sites.empty() || sites.back() != profile::AccessSite{file, step.pc}))
        sites.push_back({file, step.pc});
      steps.emplace_back(step, sites.empty() ? 0 : static_cast<uint32_t>(sites.size() - 1));
    }
    measure(to);
  }
  for (uint32_t b = 0; b < blocks.size(); b++)
    find_steady_loop(b);
}

void RunnableSkeleton::measure(Block &block) const {
  constexpr uint32_t kMaxBytes = 1 << 16; // or it runs step by step
  uint64_t bytes = block.end == End::logged ? 1 : block.end == End::choose ? 2 : 0;
  for (const RunnableStep &step : std::span(steps).subspan(block.first, block.count)) {
    if (step.op >= Op::repeat)
      bytes = kNone;
    block.accesses += step.is_access();
    if (step.op < Op::compute) {
      block.values++;
      bytes += step.size;
    }
  }
  block.bytes = bytes > kMaxBytes || block.accesses > AccessOutput::kRoom
                    ? kNone
                    : static_cast<uint32_t>(bytes);
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
