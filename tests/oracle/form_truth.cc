// form_truth [--most N] -- PROGRAM ARGUMENTS…
//
// Are symbolic forms true? Runs a program under single step and follows its routines through their
// graphs: whenever a definition is executed its value is kept, whenever a loop's head is reached
// its counter goes on, and at each access the form of the address is evaluated and compared with
// the address that is used; at each branch whose condition is known, so is the condition; when a
// loop is left whose iterations are known, so is their number. Shared objects are followed too.
// Prints how much was checked; exit 1 if anything did not agree, if control went from one
// instruction of a routine that is called understood to another where its graph has no such edge,
// left it where the graph does not say that it may, or came back into it; or if an instruction of
// such a routine was executed that is not in its graph.

#include "base/fail.h"
#include "binary/forms.h"
#include "binary/machine.h"
#include "binary/trip_counts.h"
#include "oracle/modules.h"
#include "oracle/single_step.h"

#include "abi/uop_step.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using namespace binary;
using oracle::Analyzed, oracle::Module;

constexpr unsigned kMaxReports = 30;
constexpr const char *kNoFile = "in no file", *kNoFunction = "in no function";

// A routine that is being executed.
struct Frame {
  Module *module = nullptr;
  Analyzed *routine = nullptr;
  uint32_t node = 0, next = 0; // the instruction of the block that comes next
  std::vector<uint64_t> values, counters;
  std::unordered_map<uint32_t, uint64_t> loaded_from; // by value: the address
  bool calls = false;                                 // is in a call …
  uint32_t call = 0;                                  // … of this instruction,
  uint64_t back = 0;                                  // which comes back here
  uint64_t stack = 0;                                 // with the stack pointer so
};

class Truth : private Observer {
public:
  explicit Truth(const std::vector<std::string> &command) : process_(command), memory_(process_) {}

  void run(uint64_t most) {
    process_.read_general(machine_);
    process_.read_vectors(machine_);
    while (process_.running() && executed_ < most)
      one();
  }

  bool report() const {
    uint64_t understood = followed_;
    for (const auto &[why, count] : executed_outside_)
      if (why == why_not_name(WhyNot::understood))
        understood += count;
      else
        std::fprintf(stderr, "%" PRIu64 " were not understood: %s\n", count, why.c_str());
    std::fprintf(stderr,
                 "%" PRIu64
                 " instructions, %.2f %% of them in understood routines, %.1f %% followed; %" PRIu64
                 " accesses with a form, %" PRIu64 " false; %" PRIu64 " of %" PRIu64
                 " branches with a condition, %" PRIu64 " false; %" PRIu64
                 " loops with a count, %" PRIu64 " false; lost %" PRIu64 " times, %" PRIu64
                 " instructions in no graph; %" PRIu64 " conditions on what another thread wrote\n",
                 executed_, share_of_executed(understood), share_of_executed(followed_), accesses_,
                 false_, conditions_, branches_, false_conditions_, counted_, false_counts_, lost_,
                 unlisted_, raced_);
    return false_ == 0 && false_conditions_ == 0 && false_counts_ == 0 && accesses_ > 0 &&
           lost_ == 0 && unlisted_ == 0;
  }

private:
  double share_of_executed(uint64_t count) const {
    return executed_ ? 100.0 * static_cast<double>(count) / static_cast<double>(executed_) : 0;
  }

  // --- following

  void take_value(Frame &frame, ValueId value) {
    unsigned variable = frame.routine->ssa.values[value.v].variable;
    if (variable < kMasks)
      frame.values[value.v] = machine_.registers[variable];
  }
  void take_values(Frame &frame, const std::vector<ValueId> &which) {
    for (ValueId value : which)
      take_value(frame, value);
  }

  // Control has gone from `frame.node` to the block that begins at pc.
  bool go_to(Frame &frame, uint64_t linked) {
    std::vector<uint32_t> way;
    if (!find_way(*frame.routine, frame.node, linked, way))
      return false;
    const Ssa &ssa = frame.routine->ssa;
    check_iterations(frame, way.back(), linked);
    for (uint32_t to : way) {
      for (ValueId join : ssa.joins_of(to))
        take_value(frame, join);
      for (uint32_t loop = 0; loop < ssa.loops.all.size(); loop++)
        if (ssa.loops.all[loop].header == to)
          frame.counters[loop] =
              ssa.loops.contains(loop, frame.node) ? frame.counters[loop] + 1 : 0;
      frame.node = to;
    }
    frame.next = 0;
    return true;
  }

  // Loops that are left, but for an exception, have gone round as often as their counts say.
  void check_iterations(Frame &frame, uint32_t to, uint64_t linked) {
    const Ssa &ssa = frame.routine->ssa;
    if (ssa.nodes[frame.node].block == Node::kNoBlock)
      return;
    const FlowGraph &graph = frame.routine->graph;
    const Instruction &last = graph.last_of(graph.blocks[ssa.nodes[frame.node].block]);
    if (last.is_call() && linked != last.end())
      return;
    uint32_t loop = ssa.loops.innermost[frame.node];
    for (; loop != Loop::kNone && !ssa.loops.contains(loop, to);
         loop = ssa.loops.all[loop].parent) {
      const TripCount &count = frame.routine->trips[loop];
      if (!count.times.known())
        continue;
      observed_ = &frame;
      counted_++;
      uint64_t times = evaluate(count.times), made = frame.counters[loop] + 1;
      if ((times ^ made) << (64 - count.bits) == 0)
        continue;
      false_counts_++;
      if (false_counts_ < kMaxReports)
        std::fprintf(stderr,
                     "%s: the loop left at %#" PRIx64 " had %" PRIu64
                     " iterations, not %s, which is %" PRIu64 "\n",
                     frame.module->path.c_str(), last.address, made,
                     frame.routine->forms->text(count.times).c_str(), times);
    }
  }

  // The nodes from `from` on to the block that begins at `linked`; those between have none.
  static bool find_way(const Analyzed &routine, uint32_t from, uint64_t linked,
                       std::vector<uint32_t> &way) {
    const Ssa &ssa = routine.ssa;
    for (uint32_t to : ssa.successors[from]) {
      uint32_t block = ssa.nodes[to].block;
      if (way.size() > 3) // a dispatch, and what is before loops
        return false;
      way.push_back(to);
      if (block != Node::kNoBlock
              ? routine.graph.instructions_of(routine.graph.blocks[block]).front().address == linked
              : find_way(routine, to, linked, way))
        return true;
      way.pop_back();
    }
    return false;
  }

  // A routine is entered at pc, by a call or a jump.
  void enter() {
    Module *module = modules_.at(machine_.pc);
    if (!module) {
      modules_.read(process_.pid());
      module = modules_.at(machine_.pc);
    }
    if (!module)
      return;
    uint64_t linked = machine_.pc - module->bias;
    const Routine *routine = module->program->routine_at(linked);
    if (!routine)
      return;
    Analyzed *what = modules_.analyzed(*module, *routine);
    if (!what->forms)
      return;
    Frame frame;
    frame.module = module;
    frame.routine = what;
    frame.node = Ssa::kRoot;
    frame.values.assign(what->ssa.values.size(), 0);
    frame.counters.assign(what->ssa.loops.all.size(), 0);
    for (uint32_t value = 0; value < what->ssa.values.size() && value < kVariables; value++)
      if (what->ssa.values[value].kind == ValueKind::entry)
        take_value(frame, ValueId{value});
    if (go_to(frame, linked))
      frames_.push_back(std::move(frame));
  }

  // An instruction that no frame follows, but of a routine that is called understood, must be one
  // that its graph has: whatever led there is an edge, a return, a handler. Returns why it is not
  // one of an understood routine.
  std::string check_listed() {
    Module *module = modules_.at(machine_.pc);
    if (!module)
      return kNoFile;
    uint64_t linked = machine_.pc - module->bias;
    const Routine *routine = module->program->routine_at(linked);
    Analyzed *what = routine ? modules_.analyzed(*module, *routine) : nullptr;
    if (!what)
      return kNoFunction;
    if (!what->forms || what->listed.contains(linked))
      return why_not_name(what->graph.why_not);
    unlisted_++;
    if (unlisted_ < kMaxReports)
      std::fprintf(stderr, "%s %#" PRIx64 " was executed, and is in no graph\n",
                   module->path.c_str(), linked);
    return why_not_name(WhyNot::understood);
  }

  void lose() {
    const Frame &frame = frames_.back();
    if (lost_ < kMaxReports)
      std::fprintf(stderr, "%s: control came from %#" PRIx64 " to %#" PRIx64 ": no such edge\n",
                   frame.module->path.c_str(), last_, machine_.pc - frame.module->bias);
    lost_++;
    frames_.clear();
  }

  // What calls have left behind, when control is back where a frame waits.
  void come_back() {
    while (!frames_.empty() && frames_.back().calls) {
      Frame &frame = frames_.back();
      uint64_t stack = machine_.registers[ASSAY_REG_RSP];
      if (stack == frame.stack && machine_.pc == frame.back) {
        frame.calls = false;
        auto left = frame.routine->left.find(oracle::Modules::key(frame.node, frame.call));
        if (left != frame.routine->left.end())
          take_values(frame, left->second);
        return;
      }
      if (stack < frame.stack)
        return;
      // A longjmp or an exception: to a landing pad of this frame, or to where it is not followed.
      frame.calls = false;
      if (auto left = frame.routine->left.find(oracle::Modules::key(frame.node, frame.call));
          stack == frame.stack && left != frame.routine->left.end())
        take_values(frame, left->second);
      if (stack == frame.stack && go_to(frame, machine_.pc - frame.module->bias))
        return;
      frames_.pop_back();
    }
  }

  // --- one instruction

  struct Place {
    Code code;                    // as mapped, outside of followed routines
    uint64_t *executed = nullptr; // of all for which the same is known; null: not yet decoded
  };

  const Instruction &outside_instruction() {
    auto &place = outside_[machine_.pc];
    if (!place.executed) {
      std::byte bytes[16];
      size_t size = process_.read(machine_.pc, bytes);
      if (!decoder_.decode({bytes, size}, machine_.pc, place.code))
        base::fail("the bytes at {:#x} cannot be decoded", machine_.pc);
      place.executed = &executed_outside_[check_listed()];
    }
    ++*place.executed;
    return place.code.instructions.front();
  }

  void one() {
    come_back();
    Frame *frame = frames_.empty() || frames_.back().calls ? nullptr : &frames_.back();
    if (frame) {
      uint64_t linked = machine_.pc - frame->module->bias;
      auto block = frame->routine->graph.instructions_of(
          frame->routine->graph.blocks[frame->routine->ssa.nodes[frame->node].block]);
      bool within =
          frame->next && frame->next < block.size() && block[frame->next].address == linked;
      bool first = frame->next == 0 && block.front().address == linked;
      if (!within && !first && (frame->next != block.size() || !go_to(*frame, linked))) {
        lose();
        frame = nullptr;
      }
    }
    Flow flow;
    if (frame)
      flow = follow(*frame);
    else
      flow = outside_instruction().flow;
    constexpr uint64_t kExecve = 59, kSyscallBytes = 2;
    uint64_t call = machine_.registers[ASSAY_REG_RAX], before = machine_.pc;
    bool alive = process_.step();
    executed_++;
    if (!process_.running())
      return;
    process_.read_general(machine_);
    if (call == kExecve && flow == Flow::next && machine_.pc - before > kSyscallBytes + 13 &&
        modules_.at(machine_.pc) != modules_.at(before)) { // another program
      modules_.clear();
      frames_.clear();
      outside_.clear();
      return;
    }
    if (!alive) { // a signal instead: the instruction is done when its handler is back, if ever
      frames_.clear();
      return;
    }
    after(flow);
  }

  // Executes the micro-ops of the next instruction of a frame, which checks them.
  Flow follow(Frame &frame) {
    const auto &graph = frame.routine->graph;
    const Block &block = graph.blocks[frame.routine->ssa.nodes[frame.node].block];
    const Instruction &instruction = graph.instructions_of(block)[frame.next];
    observed_ = &frame;
    at_ = frame.routine->ssa.nodes[frame.node].first_uop;
    for (uint32_t i = 0; i < frame.next; i++)
      at_ += graph.instructions_of(block)[i].uops;
    at_ -= instruction.uop;
    Machine copy = machine_;
    copy.registers[ASSAY_REG_BIAS] = frame.module->bias;
    for (const assay_uop &uop : graph.code.uops_of(instruction)) {
      auto wide = [](unsigned reg) {
        return reg != ASSAY_UOP_IMMEDIATE && reg >= ASSAY_REG_MASKS &&
               (reg < ASSAY_REG_TEMPORARIES || reg >= ASSAY_REG_LANES);
      };
      if (wide(uop.a) || wide(uop.b) || wide(uop.dst)) {
        process_.read_vectors(copy);
        break;
      }
    }
    memory_.forget();
    execute(graph.code, instruction, copy, memory_, this);
    frame.next++;
    last_ = instruction.address;
    followed_++;
    return instruction.flow;
  }

  void after(Flow flow) {
    Frame *frame = frames_.empty() || frames_.back().calls ? nullptr : &frames_.back();
    if (frame) {
      const auto &graph = frame->routine->graph;
      const Block &block = graph.blocks[frame->routine->ssa.nodes[frame->node].block];
      auto index = block.first + frame->next - 1;
      const Instruction &done = graph.code.instructions[index];
      uint64_t linked = machine_.pc - frame->module->bias;
      if (done.opaque) {
        auto left = frame->routine->left.find(oracle::Modules::key(frame->node, index));
        if (left != frame->routine->left.end())
          take_values(*frame, left->second);
      }
      if (flow == Flow::call || flow == Flow::indirect_call) {
        frame->calls = true;
        frame->call = index;
        frame->back = done.end() + frame->module->bias;
        frame->stack = machine_.registers[ASSAY_REG_RSP] + 8;
      } else if (flow == Flow::ret) {
        frames_.pop_back();
      } else if (leaves(*frame, done, linked)) {
        frames_.pop_back();
        enter();
        return;
      }
    }
    if (flow == Flow::call || flow == Flow::indirect_call)
      enter();
    else if (!frame && (flow == Flow::indirect_jump || flow == Flow::jump))
      enter_function_only();
  }

  // Whether control has left the routine, in a way that the graph has: by a jump to a known place
  // outside, by running into the next routine, by an indirect jump that is known to leave or has
  // entries in a table that do.
  bool leaves(const Frame &frame, const Instruction &done, uint64_t linked) const {
    const FlowGraph &graph = frame.routine->graph;
    const Block &block = graph.blocks[frame.routine->ssa.nodes[frame.node].block];
    if (frame.next < block.count || (done.repeats && linked == done.address))
      return false;
    const Routine *routine = frame.module->program->routine_at(done.address);
    bool inside = machine_.pc >= frame.module->begin && machine_.pc < frame.module->end &&
                  routine->contains(linked);
    if (done.flow == Flow::indirect_jump) {
      if (std::find(graph.tail_jumps.begin(), graph.tail_jumps.end(), done.address) !=
          graph.tail_jumps.end())
        return !inside || std::find(routine->entries.begin(), routine->entries.end(), linked) !=
                              routine->entries.end();
      return !inside &&
             std::any_of(graph.tables.begin(), graph.tables.end(), [&](const auto &table) {
               return table.jump == done.address &&
                      std::binary_search(table.targets.begin(), table.targets.end(), linked);
             });
    }
    if (inside)
      return false;
    return done.flow == Flow::jump ? linked == done.target()
                                   : linked == block.leaves || linked == block.runs_on;
  }

  // Outside of what is followed a jump may be a tail call: to the beginning of a routine.
  void enter_function_only() {
    Module *module = modules_.at(machine_.pc);
    if (!module)
      return;
    const Routine *routine = module->program->routine_at(machine_.pc - module->bias);
    if (routine && routine->address() == machine_.pc - module->bias)
      enter();
  }

  // --- checking

  uint64_t evaluate(ExprId id) {
    const Frame &frame = *observed_;
    const Expressions &expressions = frame.routine->forms->expressions();
    const Expr &node = expressions[id];
    auto terms = expressions.terms(id);
    switch (node.kind) {
    case ExprKind::constant: return node.value;
    case ExprKind::definition:
      return node.value == UINT64_MAX ? frame.module->bias : frame.values[node.value];
    case ExprKind::counter: return frame.counters[node.value];
    case ExprKind::sum: {
      uint64_t sum = node.value;
      for (const Term &term : terms)
        sum += term.coefficient * evaluate(term.of);
      return sum;
    }
    case ExprKind::zero_extend: return evaluate(terms[0].of) & uop_mask(node.width);
    case ExprKind::sign_extend:
      return static_cast<uint64_t>(uop_signed(evaluate(terms[0].of), node.width));
    case ExprKind::operation:
      if (node.op == ASSAY_UOP_mul)
        return evaluate(terms[0].of) * evaluate(terms[1].of);
      return terms[0].coefficient * evaluate(terms[0].of) +
             terms[1].coefficient * evaluate(terms[1].of);
    default: base::fail("a form has something that cannot be evaluated");
    }
  }

  void made(uint32_t uop, uint64_t value) override {
    ValueId result = observed_->routine->ssa.uops[at_ + uop].result;
    if (result.known())
      observed_->values[result.v] = value;
  }

  void accessed(uint32_t uop, uint64_t address) override {
    if (ValueId loaded = observed_->routine->ssa.uops[at_ + uop].result; loaded.known())
      observed_->loaded_from[loaded.v] = address;
    ExprId form = observed_->routine->addresses[at_ + uop];
    if (!form.known())
      return;
    accesses_++;
    uint64_t value = evaluate(form);
    if (value == address)
      return;
    false_++;
    complain(uop, fmt::format("{} is {:#x}, but the address is {:#x}",
                              observed_->routine->forms->text(form), value, address));
  }

  void branched(uint32_t uop, bool taken) override {
    branches_++;
    const auto &condition = observed_->routine->conditions[at_ + uop];
    if (!condition)
      return;
    conditions_++;
    uint64_t left = evaluate(condition->left), right = evaluate(condition->right);
    if (condition->op <= Condition::Op::not_equal) {
      left &= uop_mask(condition->width);
      right &= uop_mask(condition->width);
    }
    bool less = condition->is_signed ? static_cast<int64_t>(left) < static_cast<int64_t>(right)
                                     : left < right;
    bool holds = false;
    switch (condition->op) {
    case Condition::Op::equal: holds = left == right; break;
    case Condition::Op::not_equal: holds = left != right; break;
    case Condition::Op::less: holds = less; break;
    case Condition::Op::less_equal: holds = less || left == right; break;
    case Condition::Op::greater: holds = !less && left != right; break;
    case Condition::Op::greater_equal: holds = !less; break;
    }
    if (holds == taken)
      return;
    if (has_changed(condition->left) || has_changed(condition->right)) {
      raced_++;
      return;
    }
    false_conditions_++;
    complain(uop,
             fmt::format("{} {}, but the branch is {}", observed_->routine->forms->text(*condition),
                         holds ? "holds" : "does not hold", taken ? "taken" : "not taken"));
  }

  // Whether something that it was made of lies in memory as another value now: another thread wrote
  // that between our look and the processor's.
  bool has_changed(ExprId id) {
    const Expressions &expressions = observed_->routine->forms->expressions();
    const Expr &node = expressions[id];
    if (node.kind == ExprKind::definition && node.value != UINT64_MAX) {
      auto from = observed_->loaded_from.find(static_cast<uint32_t>(node.value));
      if (from == observed_->loaded_from.end())
        return false;
      uint64_t now = 0, then = observed_->values[node.value];
      const size_t bytes = process_.read(from->second, std::as_writable_bytes(std::span(&now, 1)));
      for (size_t byte = 0; byte < bytes && then >> 8 * byte; byte++)
        if ((now >> 8 * byte & 0xff) != (then >> 8 * byte & 0xff))
          return true;
      return false;
    }
    for (const Term &term : expressions.terms(id))
      if (has_changed(term.of))
        return true;
    return false;
  }

  void complain(uint32_t uop, const std::string &what) {
    if (reported_[uop + at_]++ || reported_.size() > kMaxReports)
      return;
    uint64_t pc = machine_.pc - observed_->module->bias;
    std::byte bytes[16] = {};
    process_.read(machine_.pc, bytes);
    std::fprintf(stderr, "%s %#" PRIx64 " %s: %s\n", observed_->module->path.c_str(), pc,
                 decoder_.text(bytes, pc).c_str(), what.c_str());
  }

  oracle::SingleStep process_;
  oracle::KeptBack memory_;
  Decoder decoder_;
  Machine machine_;
  oracle::Modules modules_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, Place> outside_;
  std::map<std::string, uint64_t>
      executed_outside_; // instructions, by whether their routine is understood
  std::unordered_map<uint32_t, unsigned> reported_;
  Frame *observed_ = nullptr;
  uint32_t at_ = 0;   // place in Ssa::uops of micro-op 0 of the graph, as if they went on
  uint64_t last_ = 0; // followed instruction, as linked
  uint64_t executed_ = 0, followed_ = 0, accesses_ = 0, false_ = 0, lost_ = 0, unlisted_ = 0;
  uint64_t branches_ = 0, conditions_ = 0, false_conditions_ = 0, counted_ = 0, false_counts_ = 0;
  uint64_t raced_ = 0;
};

} // namespace

int main(int argc, char **argv) {
  uint64_t most = UINT64_MAX;
  int i = 1;
  for (; i + 1 < argc && std::strcmp(argv[i], "--") != 0; i += 2)
    most = std::strtoull(argv[i + 1], nullptr, 0);
  if (i + 1 >= argc) {
    std::fprintf(stderr, "usage: form_truth [--most N] -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  try {
    Truth truth({argv + i + 1, argv + argc});
    truth.run(most);
    return truth.report() ? 0 : 1;
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "form_truth: %s\n", failure.what());
    return 2;
  }
}
