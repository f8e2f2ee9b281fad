// Instructions are found by following control from the entries, never by sweeping: what is not
// reached is not code for this purpose. When nothing direct is left, the indirect jumps that were met
// are looked at; what they reach is followed in turn, until nothing is new.
//
// Paths to an indirect jump are followed backwards through the blocks known so far, and anew in each
// round, because there may be more of them. What a comparison has bounded stays so.

#include "binary/flow_graph.h"

#include "binary/jump_tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

namespace binary {
namespace {

constexpr size_t kMostInstructions = 400'000;
constexpr unsigned kMostPathBlocks = 6;
constexpr size_t kMostPaths = 12;

class Builder {
public:
  // `tables`: addresses at which tables are known to begin.
  Builder(const Program &program, const Routine &routine, Decoder &decoder,
          std::set<uint64_t> tables)
      : program_(program), routine_(routine), decoder_(decoder),
        table_addresses_(std::move(tables)) {}

  FlowGraph build() {
    for (uint64_t entry : routine_.entries)
      reach(entry);
    follow();
    while (graph_.why_not == WhyNot::understood && resolve_jumps())
      follow();
    make_blocks();
    return std::move(graph_);
  }

  const std::set<uint64_t> &tables() const { return table_addresses_; }

private:
  void give_up(WhyNot why, uint64_t where) {
    if (graph_.why_not == WhyNot::understood) {
      graph_.why_not = why;
      graph_.where = where;
    }
  }

  // Control arrives at `address`, which begins a block.
  void reach(uint64_t address) {
    if (leaders_.insert(address).second)
      work_.push_back(address);
  }

  void follow() {
    while (!work_.empty()) {
      uint64_t address = work_.back();
      work_.pop_back();
      while (address && !index_of_.contains(address))
        address = one(address);
    }
  }

  // Decodes one instruction; the address of the next one if control may go on there.
  uint64_t one(uint64_t address) {
    auto bytes = program_.executable().bytes_from(address);
    if (!routine_.contains(address)) {
      if (!falls_into_another(address))
        give_up(WhyNot::leaves_code, address);
      return 0;
    }
    if (graph_.code.instructions.size() >= kMostInstructions) {
      give_up(WhyNot::too_large, address);
      return 0;
    }
    if (!decoder_.decode(bytes, address, graph_.code)) {
      give_up(WhyNot::undecodable, address);
      return 0;
    }
    auto index = static_cast<uint32_t>(graph_.code.instructions.size() - 1);
    index_of_[address] = index;
    Instruction &instruction = graph_.code.instructions[index];
    switch (instruction.flow) {
    case Flow::next:
      if (instruction.repeats) { // a loop of one instruction
        reach(address);
        reach(instruction.end());
        edges_[address] = {address, instruction.end()};
        return 0;
      }
      return instruction.end();
    case Flow::jump: jump_to(address, instruction.target); return 0;
    case Flow::branch:
      jump_to(address, instruction.target);
      reach(instruction.end());
      edges_[address].push_back(instruction.end());
      return 0;
    case Flow::call:
      instruction.moves_fs = program_.moves_fs(instruction.target);
      return after_call(instruction);
    case Flow::indirect_call: return after_call(instruction);
    case Flow::indirect_jump:
      edges_[address];
      unresolved_.push_back(address);
      return 0;
    case Flow::ret:
    case Flow::stop: edges_[address]; return 0;
    }
    return 0;
  }

  // Assembly's way of a tail call: through the end, and what pads it, into the next function.
  bool falls_into_another(uint64_t address) const {
    for (Code padding;; address = padding.instructions.back().end()) {
      const image::CodeRange *range = program_.executable().function_at(address);
      if (range)
        return range->begin == address;
      if (!decoder_.decode(program_.executable().bytes_from(address), address, padding) ||
          mnemonic_name(padding.instructions.back().mnemonic) != std::string_view("nop"))
        return false;
    }
  }

  void jump_to(uint64_t from, uint64_t target) {
    auto &edges = edges_[from];
    if (!routine_.contains(target))
      return; // a tail call
    edges.push_back(target);
    reach(target);
  }

  uint64_t after_call(const Instruction &instruction) {
    uint64_t next = instruction.end();
    return_addresses_.insert(next);
    auto pads = landing_pads_of(instruction.address);
    bool returns = instruction.flow == Flow::call ? !program_.never_returns(instruction.target)
                                                  : !never_returns_indirect(instruction);
    // A call at the very end comes back nowhere, whatever is known of whom it calls.
    returns = returns && routine_.contains(next);
    if (returns && pads.empty())
      return next;
    auto &edges = edges_[instruction.address];
    if (returns) {
      edges.push_back(next);
      reach(next);
    }
    for (uint64_t pad : pads) {
      edges.push_back(pad);
      reach(pad);
    }
    return 0;
  }

  bool never_returns_indirect(const Instruction &instruction) const {
    // call [rip+slot]
    for (const Access &access : graph_.code.accesses_of(instruction)) {
      if (!access.has_address() || access.write)
        continue;
      const assay_uop &uop = graph_.code.uops[access.uop];
      if (uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO)
        return program_.never_returns_through(static_cast<uint64_t>(int64_t{uop.i}));
    }
    return false;
  }

  std::vector<uint64_t> landing_pads_of(uint64_t call) const {
    std::vector<uint64_t> pads;
    const auto &all = program_.executable().landing_pads();
    auto after = std::upper_bound(
        all.begin(), all.end(), call,
        [](uint64_t address, const image::LandingPad &pad) { return address < pad.call_begin; });
    if (after != all.begin()) {
      const image::LandingPad &pad = *std::prev(after);
      if (call < pad.call_end && routine_.contains(pad.pad))
        pads.push_back(pad.pad);
    }
    return pads;
  }

  // Instructions of the block that begins at `leader`, in order, as steps of a path.
  std::vector<PathStep> steps_of(uint64_t leader, std::optional<uint64_t> goes_to) const {
    std::vector<PathStep> steps;
    for (uint64_t address = leader;;) {
      auto found = index_of_.find(address);
      if (found == index_of_.end())
        return steps;
      const Instruction &instruction = graph_.code.instructions[found->second];
      steps.push_back({found->second, instruction.flow == Flow::branch && goes_to &&
                                          *goes_to == instruction.target});
      address = instruction.end();
      if (edges_.contains(instruction.address) || leaders_.contains(address))
        return steps;
    }
  }

  void find_predecessors() {
    predecessors_.clear();
    block_of_last_.clear();
    for (uint64_t leader : leaders_) {
      auto steps = steps_of(leader, std::nullopt);
      if (steps.empty())
        continue;
      const Instruction &last = graph_.code.instructions[steps.back().instruction];
      block_of_last_[last.address] = leader;
      auto edges = edges_.find(last.address);
      if (edges == edges_.end())
        predecessors_[last.end()].push_back(leader);
      else
        for (uint64_t successor : edges->second)
          predecessors_[successor].push_back(leader);
    }
  }

  // All ways to the block `leader`, of a few blocks each; they end with the steps in `tail`.
  void ways_to(uint64_t leader, std::vector<PathStep> tail, unsigned depth,
               const std::set<uint64_t> &seen, std::vector<Path> &ways) const {
    auto before = predecessors_.find(leader);
    bool begins = before == predecessors_.end() || depth == kMostPathBlocks ||
                  before->second.size() > kMostPaths;
    if (!begins)
      for (uint64_t predecessor : before->second)
        begins |= seen.contains(predecessor);
    if (begins || ways.size() >= kMostPaths) {
      ways.push_back({constants_at(leader), std::move(tail)});
      return;
    }
    for (uint64_t predecessor : before->second) {
      auto steps = steps_of(predecessor, leader);
      steps.insert(steps.end(), tail.begin(), tail.end());
      auto with = seen;
      with.insert(predecessor);
      ways_to(predecessor, std::move(steps), depth + 1, with, ways);
    }
  }

  // Calls make the address behind them as well.
  bool returns_to(uint64_t address) const { return return_addresses_.contains(address); }

  ResolvedJump resolve(uint64_t jump) {
    uint64_t leader = block_of_last_.at(jump);
    auto is_target = [&](uint64_t target, bool bounded) {
      return is_jump_target(target) && (bounded || is_likely_target(target));
    };
    auto limit = [&](uint64_t table) { // the next one
      auto next = table_addresses_.upper_bound(table);
      return next == table_addresses_.end() ? UINT64_MAX : *next;
    };
    // Short ways first: a bound that all of them have is enough.
    ResolvedJump best{JumpKind::unknown, {}};
    for (unsigned blocks = 0; blocks <= kMostPathBlocks; blocks++) {
      std::vector<Path> ways;
      auto tail = steps_of(leader, std::nullopt);
      if (blocks == 0)
        ways.push_back({constants_at(leader), tail});
      else
        ways_to(leader, tail, kMostPathBlocks - blocks, {leader}, ways);
      ResolvedJump found = resolve_jump(program_.executable(), graph_.code, ways, is_target, limit);
      // Bounded, and an entry makes no sense: a longer table without a bound would make less.
      if (found.table.bounded)
        return found;
      if (blocks == 0 || (best.kind != JumpKind::table && found.kind == JumpKind::table))
        best = std::move(found);
    }
    return best;
  }

  // Into this routine, or into a part of it that does not jump back and so was not seen to belong; of
  // such parts nothing but unwind tables is known in files without symbols.
  bool is_jump_target(uint64_t target) const {
    if (routine_.contains(target))
      return true;
    const image::CodeRange *range = program_.executable().function_at(target);
    return range && (range->name.find(".cold") != std::string::npos ||
                     range->found_by == image::FoundBy::unwind);
  }

  // Whether an instruction of the routine begins there when its range is read from the beginning
  // (compilers put nothing but code into functions), or a moved part.
  bool is_likely_target(uint64_t address) {
    for (const image::CodeRange &range : routine_.ranges) {
      if (address < range.begin || address >= range.end)
        continue;
      auto &begins = begins_[range.begin];
      if (begins.empty()) {
        begins.resize(range.end - range.begin);
        Code code;
        for (uint64_t at = range.begin; at < range.end; at = code.instructions.back().end()) {
          code.clear();
          if (!decoder_.decode(program_.executable().bytes_from(at), at, code))
            break;
          begins[at - range.begin] = true;
        }
      }
      return begins[address - range.begin];
    }
    const image::CodeRange *part = program_.executable().function_at(address);
    return part && part->begin == address;
  }

  // Labels of this routine whose address lies in the file's data, or is made by an instruction of it.
  std::vector<uint64_t> pointed_labels() const {
    std::vector<uint64_t> labels;
    for (const assay_uop &uop : graph_.code.uops) {
      bool is_address =
          uop.op == ASSAY_UOP_lea && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO;
      bool is_constant = uop.op == ASSAY_UOP_or && uop.a == ASSAY_REG_ZERO &&
                         uop.b == ASSAY_UOP_IMMEDIATE &&
                         !program_.executable().position_independent();
      uint64_t label =
          is_address ? static_cast<uint64_t>(int64_t{uop.i}) : static_cast<uint64_t>(uop.imm);
      if ((is_address || is_constant) && routine_.contains(label) && !returns_to(label) &&
          std::find(routine_.entries.begin(), routine_.entries.end(), label) ==
              routine_.entries.end())
        labels.push_back(label);
    }
    const auto &pointers = program_.executable().code_pointers();
    for (const image::CodeRange &range : routine_.ranges)
      for (auto at = std::upper_bound(pointers.begin(), pointers.end(), range.begin);
           at != pointers.end() && *at < range.end; ++at)
        labels.push_back(*at);
    return labels;
  }

  // Constants of registers at the beginning of each block: forward, until nothing changes.
  void find_constants() {
    constants_.clear();
    std::vector<uint64_t> work;
    auto arrive = [&](uint64_t leader, const Constants &from) {
      auto [at, is_new] = constants_.try_emplace(leader, from);
      bool changed = is_new;
      for (unsigned reg = 0; !is_new && reg < from.size(); reg++)
        if (at->second[reg] != from[reg] && at->second[reg].kind != Constant::varies) {
          at->second[reg] = {Constant::varies, 0};
          changed = true;
        }
      if (changed)
        work.push_back(leader);
    };
    Constants nothing;
    nothing.fill({Constant::varies, 0});
    for (uint64_t entry : routine_.entries)
      arrive(entry, nothing);
    while (!work.empty()) {
      uint64_t leader = work.back();
      work.pop_back();
      Constants now = constants_.at(leader);
      auto steps = steps_of(leader, std::nullopt);
      if (steps.empty())
        continue;
      for (const PathStep &step : steps)
        execute(graph_.code, graph_.code.instructions[step.instruction], now);
      const Instruction &last = graph_.code.instructions[steps.back().instruction];
      auto edges = edges_.find(last.address);
      if (edges == edges_.end())
        arrive(last.end(), now);
      else
        for (uint64_t successor : edges->second)
          arrive(successor, now);
    }
  }
  Constants constants_at(uint64_t leader) const {
    auto found = constants_.find(leader);
    if (found != constants_.end())
      return found->second;
    Constants nothing;
    nothing.fill({Constant::varies, 0});
    return nothing;
  }

  bool resolve_jumps() {
    if (unresolved_.empty())
      return false;
    find_predecessors();
    find_constants();
    bool any = false;
    for (uint64_t jump : unresolved_) {
      ResolvedJump resolved = resolve(jump);
      // What a comparison has bounded stays so: ways that are found later and do not fit lead through
      // calls that do not return.
      if (kinds_[jump] == JumpKind::table && tables_[jump].bounded &&
          (resolved.kind != JumpKind::table || !resolved.table.bounded))
        continue;
      std::vector<uint64_t> targets;
      if (resolved.kind == JumpKind::table) {
        resolved.table.jump = jump;
        table_addresses_.insert(resolved.table.address);
        targets = resolved.table.targets;
      } else if (resolved.kind == JumpKind::pointer) {
        targets = pointed_labels();
      }
      kinds_[jump] = resolved.kind;
      tables_[jump] = std::move(resolved.table);
      auto &edges = edges_[jump];
      for (uint64_t target : targets)
        if (routine_.contains(target) &&
            std::find(edges.begin(), edges.end(), target) == edges.end()) {
          edges.push_back(target);
          reach(target);
          any = true;
        }
    }
    return any;
  }

  void make_blocks() {
    for (uint64_t jump : unresolved_) {
      if (kinds_[jump] == JumpKind::unknown)
        give_up(WhyNot::unresolved_jump, jump);
      else if (kinds_[jump] == JumpKind::table)
        graph_.tables.push_back(std::move(tables_[jump]));
      else if (edges_[jump].empty())
        graph_.tail_jumps.push_back(jump);
    }
    // The instructions anew, block by block.
    Code code = std::move(graph_.code);
    graph_.code = {};
    std::unordered_map<uint64_t, uint32_t> block_of;
    for (uint64_t leader : leaders_) {
      auto steps = [&] {
        std::swap(code, graph_.code);
        auto result = steps_of(leader, std::nullopt);
        std::swap(code, graph_.code);
        return result;
      }();
      if (steps.empty())
        continue;
      Block block;
      block.first = static_cast<uint32_t>(graph_.code.instructions.size());
      block.count = static_cast<uint32_t>(steps.size());
      for (const PathStep &step : steps)
        append(code, code.instructions[step.instruction]);
      block_of[leader] = static_cast<uint32_t>(graph_.blocks.size());
      graph_.blocks.push_back(std::move(block));
    }
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Instruction &last = graph_.last_of(graph_.blocks[b]);
      auto edges = edges_.find(last.address);
      std::vector<uint64_t> targets =
          edges == edges_.end() ? std::vector<uint64_t>{last.end()} : edges->second;
      for (uint64_t target : targets)
        if (auto to = block_of.find(target); to != block_of.end()) {
          auto &successors = graph_.blocks[b].successors;
          if (std::find(successors.begin(), successors.end(), to->second) != successors.end())
            continue;
          successors.push_back(to->second);
          graph_.blocks[to->second].predecessors.push_back(b);
        }
    }
    for (uint64_t entry : routine_.entries)
      if (auto at = block_of.find(entry); at != block_of.end())
        graph_.entries.push_back(at->second);
    if (graph_.entries.empty())
      give_up(WhyNot::undecodable, routine_.address());
  }

  void append(const Code &from, Instruction instruction) {
    auto uop = static_cast<uint32_t>(graph_.code.uops.size());
    auto access = static_cast<uint32_t>(graph_.code.accesses.size());
    for (Access each : from.accesses_of(instruction)) {
      if (each.has_address())
        each.uop = each.uop - instruction.uop + uop;
      graph_.code.accesses.push_back(each);
    }
    auto uops = from.uops_of(instruction);
    graph_.code.uops.insert(graph_.code.uops.end(), uops.begin(), uops.end());
    instruction.uop = uop;
    instruction.access = access;
    graph_.code.instructions.push_back(instruction);
  }

  const Program &program_;
  const Routine &routine_;
  Decoder &decoder_;
  FlowGraph graph_;
  std::set<uint64_t> leaders_;
  std::vector<uint64_t> work_, unresolved_;
  std::unordered_map<uint64_t, uint32_t> index_of_; // address -> instruction
  // By the address of the last instruction of a block: where control goes. Not there: only to the
  // next instruction, which begins another block.
  std::unordered_map<uint64_t, std::vector<uint64_t>> edges_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> predecessors_; // by leader
  std::unordered_map<uint64_t, uint64_t> block_of_last_;             // leaders
  std::map<uint64_t, JumpKind> kinds_;
  std::map<uint64_t, JumpTable> tables_;
  std::set<uint64_t> table_addresses_;
  std::unordered_map<uint64_t, std::vector<bool>> begins_; // by range, of each byte
  std::set<uint64_t> return_addresses_;
  std::unordered_map<uint64_t, Constants> constants_; // by leader
};

} // namespace

const char *why_not_name(WhyNot why) {
  switch (why) {
  case WhyNot::understood: return "understood";
  case WhyNot::undecodable: return "undecodable";
  case WhyNot::leaves_code: return "leaves_code";
  case WhyNot::unresolved_jump: return "unresolved_jump";
  case WhyNot::too_large: return "too_large";
  }
  return "";
}

const char *why_not_meaning(WhyNot why) {
  switch (why) {
  case WhyNot::understood: return "its control flow is known";
  case WhyNot::undecodable: return "control reaches bytes that are no instruction";
  case WhyNot::leaves_code: return "control runs off the end of the function";
  case WhyNot::unresolved_jump: return "an indirect jump goes where no table says";
  case WhyNot::too_large: return "it has more instructions than are looked at";
  }
  return "";
}

FlowGraph flow_graph(const Program &program, const Routine &routine, Decoder &decoder) {
  // A table without a bound ends where the next one begins, which may be found later: then all of it
  // is done again, with what is known now.
  constexpr int kMostTurns = 4;
  std::set<uint64_t> tables;
  for (int turn = 1;; turn++) {
    Builder builder(program, routine, decoder, tables);
    FlowGraph graph = builder.build();
    tables = builder.tables();
    bool overlap =
        std::any_of(graph.tables.begin(), graph.tables.end(), [&](const JumpTable &table) {
          auto next = tables.upper_bound(table.address);
          return !table.bounded && next != tables.end() &&
                 *next < table.address + uint64_t{table.entries} * table.entry_bytes;
        });
    if (!overlap || turn == kMostTurns)
      return graph;
  }
}

} // namespace binary
