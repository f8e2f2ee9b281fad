// A graph of blocks becomes nested loops and ifs. Blocks are put in an order in which each loop's
// are together, and none comes before what leads to it but by a loop. Then one walk over that order
// prints them: at the first block of a loop `for (;;) {`; at a branch that skips blocks `if (…) {`.
// What does not fit (loops with two entries, jumps into the middle) is a goto; C allows labels and
// cases anywhere, so nothing has to be copied.
//
// Computations that nothing needs are left out.

#include "trace/skeleton_text.h"

#include "binary/dominators.h"
#include "binary/loops.h"
#include "trace/skeleton_expressions.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;

constexpr uint32_t kOut = SkeletonBlock::kOut;

class Text {
public:
  Text(const Skeleton &skeleton, std::span<const SkeletonStart> starts)
      : skeleton_(skeleton), starts_(starts) {}

  std::string function(const std::string &name) {
    order();
    find_conditions();
    find_needed();
    for (const bool counts :
         {true, false}) { // which labels are needed is known when all jumps have been printed
      text_.clear();
      is_counting_ = counts;
      depth_ = 1;
      since_room_ = 0;
      range(0, static_cast<uint32_t>(order_.size()), Loop::kNone, kOut, kOut);
    }
    std::string head = fmt::format("void {}(struct stream *s, int start) {{\n  BEGIN;\n", name);
    std::string names;
    for (unsigned v = 0; v < kSkeletonVariables; v++)
      if (used_ & bit(v) && !is_constant(v))
        names += fmt::format("{}{} = 0", names.empty() ? "  uint64_t " : ", ", name_of(v));
    if (!names.empty())
      head += names + ";\n";
    return head + "  switch (start) {\n" + text_ + "  }\n  STOP;\n}\n";
  }

private:
  using Loop = binary::Loop;

  // ---- the order

  // Successors within the skeleton, and the block behind a call: that is where the function goes on.
  void order() {
    const auto count = static_cast<uint32_t>(skeleton_.blocks.size());
    start_at_.assign(count, UINT32_MAX);
    for (uint32_t i = 0; i < starts_.size(); i++)
      start_at_[starts_[i].block] = i;
    std::vector<bool> reached(count, false);
    std::vector<uint32_t> work;
    for (const SkeletonStart &start : starts_)
      work.push_back(start.block);
    while (!work.empty()) {
      const uint32_t block = work.back();
      work.pop_back();
      if (reached[block])
        continue;
      reached[block] = true;
      for (uint32_t next : targets_of(block))
        work.push_back(next);
    }
    binary::Edges edges(count + 1);
    std::vector<bool> has_predecessor(count, false);
    for (uint32_t b = 0; b < count; b++) {
      if (!reached[b])
        continue;
      edges[b] = targets_of(b);
      if (skeleton_.blocks[b].end == End::stop && b + 1 < count && start_at_[b + 1] != UINT32_MAX)
        edges[b].push_back(b + 1);
      for (uint32_t next : edges[b])
        has_predecessor[next] = true;
    }
    auto &root = edges[count];
    for (const SkeletonStart &start : starts_)
      if (!has_predecessor[start.block])
        root.push_back(start.block);
    for (;;) { // a start that only a loop of starts leads to
      dominators_ = binary::dominators(edges, count);
      std::vector<bool> in_order(count + 1, false);
      for (uint32_t node : dominators_.order)
        in_order[node] = true;
      auto lost = std::find_if(starts_.begin(), starts_.end(),
                               [&](const SkeletonStart &start) { return !in_order[start.block]; });
      if (lost == starts_.end())
        break;
      root.push_back(lost->block);
    }
    loops_ = binary::find_loops(edges, dominators_, count);
    std::vector<uint32_t> all;
    for (uint32_t node : dominators_.order)
      if (node != count)
        all.push_back(node);
    place_.assign(count, kOut);
    put_in_order(all, Loop::kNone);
  }

  binary::NodeList targets_of(uint32_t block) const {
    binary::NodeList targets;
    for (uint32_t next : skeleton_.blocks[block].next)
      if (next != kOut && std::find(targets.begin(), targets.end(), next) == targets.end())
        targets.push_back(next);
    return targets;
  }

  // Those of an inner loop stand together where the first of them stands.
  void put_in_order(const std::vector<uint32_t> &blocks, uint32_t within) {
    for (uint32_t block : blocks) {
      if (place_[block] != kOut)
        continue;
      uint32_t loop = loops_.innermost[block];
      if (loop != Loop::kNone && loop != within)
        while (loops_.all[loop].parent != within)
          loop = loops_.all[loop].parent;
      if (loop == within) {
        place_[block] = static_cast<uint32_t>(order_.size());
        order_.push_back(block);
        continue;
      }
      std::vector<uint32_t> inner;
      for (uint32_t each : blocks)
        if (loops_.contains(loop, each) && place_[each] == kOut)
          inner.push_back(each);
      const auto first = static_cast<uint32_t>(order_.size());
      put_in_order(inner, loop);
      const auto end = static_cast<uint32_t>(order_.size());
      if (order_[first] == loops_.all[loop].header && jumps_back(loop))
        loop_end_[first].push_back({loop, end});
    }
  }

  // Whether the skeleton itself goes round, not only by way of a call.
  bool jumps_back(uint32_t loop) const {
    for (uint32_t from : loops_.all[loop].back) {
      const auto targets = targets_of(from);
      if (std::find(targets.begin(), targets.end(), loops_.all[loop].header) != targets.end())
        return true;
    }
    return false;
  }

  // ---- conditions and what is needed

  void find_conditions() {
    conditions_.resize(skeleton_.blocks.size());
    for (uint32_t b : order_)
      conditions_[b] = condition_of(skeleton_.blocks[b]);
  }

  void find_needed() {
    std::vector<Variables> begin(skeleton_.blocks.size(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = order_.size(); i-- > 0;) {
        const uint32_t b = order_[i];
        Variables live = conditions_[b].read;
        for (uint32_t next : targets_of(b))
          live |= begin[next];
        live = through(b, live, nullptr);
        changed |= live != begin[b];
        begin[b] = live;
      }
    }
    is_needed_.resize(skeleton_.blocks.size());
    for (uint32_t b : order_) {
      Variables live = conditions_[b].read;
      for (uint32_t next : targets_of(b))
        live |= begin[next];
      is_needed_[b].assign(skeleton_.blocks[b].steps.size(), true);
      through(b, live, &is_needed_[b]);
    }
    for (uint32_t b : order_) {
      used_ |= conditions_[b].read;
      for (size_t s = 0; s < skeleton_.blocks[b].steps.size(); s++)
        if (is_needed_[b][s])
          used_ |= read_by(skeleton_.blocks[b].steps[s]) | writes(skeleton_.blocks[b].steps[s]);
    }
    for (const SkeletonStart &start : starts_)
      for (uint8_t reg : start.registers)
        used_ |= bit(reg);
  }

  // What is live before the block's steps; says which of them are needed.
  Variables through(uint32_t b, Variables live, std::vector<bool> *needed) const {
    const auto &steps = skeleton_.blocks[b].steps;
    for (size_t s = steps.size(); s-- > 0;) {
      const Variables written = writes(steps[s]);
      if (steps[s].kind == Kind::compute && !(written & live)) {
        if (needed)
          (*needed)[s] = false;
        continue;
      }
      live &= ~written;
      live |= read_by(steps[s]);
    }
    return live;
  }

  // ---- printing

  void line(const std::string &text) { text_.append(2 * depth_, ' ').append(text).push_back('\n'); }

  // The places [from, to) of the order, in the loop with the number; control that falls off their
  // end comes to block `follow`, a `break` to block `behind`.
  void range(uint32_t from, uint32_t to, uint32_t loop, uint32_t follow, uint32_t behind) {
    for (uint32_t at = from; at < to;) {
      if (const auto inner = loop_at(at, loop)) {
        const uint32_t next = inner->end < to ? order_[inner->end] : follow;
        line("for (;;) {");
        depth_++;
        room();
        range(at, inner->end, inner->loop, order_[at], next);
        depth_--;
        line("}");
        at = inner->end;
      } else {
        at = block(at, to, loop, follow, behind);
      }
    }
  }

  struct Inner {
    uint32_t loop, end;
  };
  // The outermost loop that begins there and is not printed yet.
  std::optional<Inner> loop_at(uint32_t at, uint32_t within) const {
    auto found = loop_end_.find(at);
    if (found == loop_end_.end())
      return std::nullopt;
    std::optional<Inner> outermost;
    for (const Inner &each : found->second)
      if (each.loop != within && !(within != Loop::kNone && loops_.encloses(each.loop, within)) &&
          (!outermost || each.end > outermost->end))
        outermost = each;
    return outermost;
  }

  void room() {
    line("ROOM;");
    since_room_ = 0;
  }

  uint32_t block(uint32_t at, uint32_t to, uint32_t loop, uint32_t follow, uint32_t behind) {
    const uint32_t b = order_[at];
    const SkeletonBlock &block = skeleton_.blocks[b];
    if (is_target_.contains(b)) {
      depth_--;
      line(fmt::format("L{:x}_{}:;", block.address, b));
      depth_++;
      if (goes_back_.contains(b))
        room();
    }
    if (start_at_[b] != UINT32_MAX)
      start(b, block);
    steps(b, block);
    const uint32_t next = at + 1 < to ? order_[at + 1] : follow;
    switch (block.end) {
    case End::stop: line("STOP;"); break;
    case End::go: jump(at, block.next[0], next, loop, behind); break;
    case End::choose: choose(at, block); break;
    default: return branch(at, to, loop, follow, behind);
    }
    return at + 1;
  }

  void start(uint32_t b, const SkeletonBlock &block) {
    depth_--;
    line(fmt::format("START({}) // {:#x}", start_at_[b], block.address));
    depth_++;
    for (uint8_t reg : starts_[start_at_[b]].registers)
      line(fmt::format("{} = IN(8);", name_of(reg)));
  }

  void steps(uint32_t b, const SkeletonBlock &block) {
    for (size_t s = 0; s < block.steps.size(); s++) {
      const SkeletonStep &step = block.steps[s];
      switch (step.kind) {
      case Kind::in: line(fmt::format("{} = IN({});", name_of(step.uop.dst), step.size)); break;
      case Kind::compute:
        if (is_needed_[b][s])
          line(fmt::format("{} = {};", name_of(step.uop.dst), value_text(step.uop)));
        break;
      case Kind::access:
        if (since_room_++ > kAccessesAtOnce)
          room();
        line(access_text(step));
        break;
      case Kind::repeat:
      case Kind::compare: s = repeat(block, s); break;
      }
    }
  }

  size_t repeat(const SkeletonBlock &block, size_t first) {
    const SkeletonStep &step = block.steps[first];
    size_t end = first + 1;
    while (end < block.steps.size() && block.steps[end].kind == step.kind &&
           block.steps[end].pc == step.pc)
      end++;
    line(fmt::format("for (uint64_t i = 0, times = rcx{}; i < times; i++) {{",
                     step.kind == Kind::compare ? " - PEEK(8)" : ""));
    depth_++;
    room();
    for (size_t s = first; s < end; s++)
      line(access_text(block.steps[s], fmt::format(" + i * {}", block.steps[s].size)));
    depth_--;
    line("}");
    if (step.kind == Kind::compare)
      line("(void)IN(8);");
    room();
    return end - 1;
  }

  // To a block, where control would come to `next` by itself.
  std::string jump_text(uint32_t at, uint32_t target, uint32_t next, uint32_t loop,
                        uint32_t behind) {
    if (target == next && target != kOut)
      return "";
    if (target == kOut)
      return "STOP;";
    if (loop != Loop::kNone) {
      if (target == loops_.all[loop].header)
        return "continue;";
      if (target == behind)
        return "break;";
    }
    return go_to(at, target);
  }
  std::string go_to(uint32_t at, uint32_t target) {
    if (is_counting_) {
      is_target_.insert(target);
      if (place_[target] <= at)
        goes_back_.insert(target);
    }
    return fmt::format("goto L{:x}_{};", skeleton_.blocks[target].address, target);
  }
  void jump(uint32_t at, uint32_t target, uint32_t next, uint32_t loop, uint32_t behind) {
    const std::string text = jump_text(at, target, next, loop, behind);
    if (!text.empty())
      line(text);
  }

  void choose(uint32_t at, const SkeletonBlock &block) {
    line("switch (IN(2)) {");
    for (size_t i = 0; i < block.next.size(); i++) {
      const uint32_t target = block.next[i];
      line(fmt::format("case {}: {}", i, target == kOut ? "STOP;" : go_to(at, target)));
    }
    line("default: damaged(\"a jump leads nowhere\");");
    line("}");
  }

  // Whether no loop that begins in [from, to) ends behind `to`.
  bool is_closed(uint32_t from, uint32_t to, uint32_t loop) const {
    for (uint32_t at = from; at < to; at++)
      if (const auto inner = loop_at(at, loop); inner && inner->end > to)
        return false;
    return true;
  }

  // Prints the branch, and as much of what follows as belongs to it; where the range goes on.
  uint32_t branch(uint32_t at, uint32_t to, uint32_t loop, uint32_t follow, uint32_t behind) {
    const SkeletonBlock &block = skeleton_.blocks[order_[at]];
    const std::string &condition = conditions_[order_[at]].text;
    const uint32_t next = at + 1 < to ? order_[at + 1] : follow;
    uint32_t taken = block.next[0], other = block.next[1];
    std::string if_taken = condition, if_other = negated(condition);
    if (taken == next && next != kOut) { // the other way round
      std::swap(taken, other);
      std::swap(if_taken, if_other);
    }
    const std::string text = jump_text(at, taken, next, loop, behind);
    // Over some blocks.
    if (other == next && at + 1 < to && taken != kOut && text.starts_with("goto")) {
      const uint32_t end = taken == follow ? to : place_[taken];
      if (end > at + 1 && (end < to || taken == follow) && is_closed(at + 1, end, loop)) {
        line(fmt::format("if ({}) {{", if_other));
        depth_++;
        const uint32_t after = otherwise(at, end, to, loop, follow, behind, taken);
        depth_--;
        line("}");
        return after;
      }
    }
    if (text.empty()) {
      jump(at, other, next, loop, behind);
      return at + 1;
    }
    line(fmt::format("if ({})", if_taken));
    depth_++;
    line(text);
    depth_--;
    jump(at, other, next, loop, behind);
    return at + 1;
  }

  // The blocks of an `if`, and those of its `else` if there is one; where the range goes on.
  uint32_t otherwise(uint32_t at, uint32_t end, uint32_t to, uint32_t loop, uint32_t follow,
                     uint32_t behind, uint32_t taken) {
    const SkeletonBlock &last = skeleton_.blocks[order_[end - 1]];
    if (last.end == End::go && last.next[0] != kOut && end < to) {
      const uint32_t join = last.next[0];
      const uint32_t join_at = join == follow ? to : place_[join];
      if (join_at > end && (join_at < to || join == follow) && is_closed(end, join_at, loop) &&
          !loop_at(end - 1, loop)) {
        range(at + 1, end, loop, join, behind);
        depth_--;
        line("} else {");
        depth_++;
        range(end, join_at, loop, join, behind);
        return join_at;
      }
    }
    range(at + 1, end, loop, taken, behind);
    return end;
  }

  const Skeleton &skeleton_;
  const std::span<const SkeletonStart> starts_;
  std::vector<uint32_t> start_at_; // by block: of starts_, or none
  binary::Dominators dominators_;
  binary::Loops loops_;
  std::vector<uint32_t> order_, place_;             // blocks; where each is in it
  std::map<uint32_t, std::vector<Inner>> loop_end_; // by the place where loops begin
  std::vector<Condition> conditions_;               // by block
  std::vector<std::vector<bool>> is_needed_;        // by block and step
  Variables used_ = 0;
  bool is_counting_ = false; // only which labels are needed
  std::set<uint32_t> is_target_, goes_back_;
  size_t since_room_ = 0;
  unsigned depth_ = 1;
  std::string text_;
};

} // namespace

std::string skeleton_text(const Skeleton &skeleton, const std::string &name,
                          std::span<const SkeletonStart> starts) {
  return Text(skeleton, starts).function(name);
}

} // namespace trace
