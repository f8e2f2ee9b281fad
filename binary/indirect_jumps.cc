// Paths to an indirect jump are followed backwards through the blocks that are known so far, and anew
// in each round, because there may be more of them: binary/jump_tables.h says what a set of paths
// means. What a table cannot explain is a jump through a pointer; whether that is a tail call, or goes
// to labels whose address is taken, is decided when all of the graph is known (binary/flow_graph.cc).

#include "binary/indirect_jumps.h"

#include "abi/uop_step.h"
#include "binary/effects.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace binary {
namespace {

constexpr unsigned kMaxPathBlocks = 6;
static_assert(kMaxPathBlocks + 1 == Path::kMaxPieces);
constexpr size_t kMaxPaths = 12;

Constants no_constants() {
  Constants nothing;
  nothing.fill({Constant::varies, 0});
  return nothing;
}

} // namespace

uint32_t IndirectJumps::piece_at(uint64_t leader) const {
  auto found =
      std::lower_bound(pieces_.begin(), pieces_.end(), leader,
                       [](const Piece &piece, uint64_t wanted) { return piece.leader < wanted; });
  return found == pieces_.end() || found->leader != leader
             ? kNone
             : static_cast<uint32_t>(found - pieces_.begin());
}

bool IndirectJumps::goes_to_labels(const Instruction &jump) const {
  if (jump.flow != Flow::indirect_jump)
    return false;
  auto found = jumps.find(jump.address);
  return found != jumps.end() && found->second.kind == JumpKind::pointer;
}

template <class Visit> void IndirectJumps::successors_of(const Piece &piece, Visit visit) const {
  if (const auto *targets = walk_.targets_of(instructions_[piece.end - 1])) {
    for (uint64_t target : *targets)
      if (uint32_t to = piece_at(target); to != kNone)
        visit(to);
  } else if (uint32_t to = piece_at(last_of(piece).end()); to != kNone) {
    visit(to);
  }
}

void IndirectJumps::find_pieces() {
  pieces_.clear();
  instructions_.clear();
  for (uint64_t leader : walk_.leaders()) {
    const auto first = static_cast<uint32_t>(instructions_.size());
    walk_.append_block(leader, instructions_);
    pieces_.push_back({leader, first, static_cast<uint32_t>(instructions_.size()), {}, false});
  }
  for (uint32_t from = 0; from < pieces_.size(); from++)
    successors_of(pieces_[from], [&](uint32_t to) { pieces_[to].predecessors.push_back(from); });
  for (uint64_t label : labels_)
    if (uint32_t to = piece_at(label); to != kNone)
      pieces_[to].dispatched = true;
}

// Constants of registers at the beginning of each block: forward, until nothing changes.
void IndirectJumps::find_constants() {
  constants_.assign(pieces_.size(), no_constants());
  std::vector<bool> reached(pieces_.size(), false);
  std::vector<uint32_t> work;
  auto meet = [](Constants &known, const Constants &from) {
    bool changed = false;
    for (unsigned reg = 0; reg < from.size(); reg++)
      if (known[reg] != from[reg] && known[reg].kind != Constant::varies) {
        known[reg] = {Constant::varies, 0};
        changed = true;
      }
    return changed;
  };
  auto arrive = [&](uint32_t piece, const Constants &from) {
    bool changed = !reached[piece];
    if (changed)
      constants_[piece] = from;
    else
      changed = meet(constants_[piece], from);
    reached[piece] = true;
    if (changed)
      work.push_back(piece);
  };
  for (uint64_t entry : walk_.routine.entries)
    if (uint32_t piece = piece_at(entry); piece != kNone)
      arrive(piece, no_constants());
  bool dispatches = false;
  Constants at_dispatch{};
  while (!work.empty()) {
    uint32_t piece = work.back();
    work.pop_back();
    Constants now = constants_[piece];
    for (uint32_t index : instructions_of(pieces_[piece]))
      execute(walk_.code, walk_.code.instructions[index], now);
    successors_of(pieces_[piece], [&](uint32_t to) { arrive(to, now); });
    if (!goes_to_labels(last_of(pieces_[piece])))
      continue;
    bool changed = !dispatches;
    if (changed)
      at_dispatch = now;
    else
      changed = meet(at_dispatch, now);
    dispatches = true;
    for (size_t i = 0; changed && i < labels_.size(); i++)
      if (uint32_t to = piece_at(labels_[i]); to != kNone)
        arrive(to, at_dispatch);
  }
}

// All ways over so many blocks to the last of `back_`, and on, as `back_` says from its end, to the
// jump. True if there are longer ones.
bool IndirectJumps::find_ways(unsigned blocks) {
  const Piece &piece = pieces_[back_.back()];
  const auto &before = piece.predecessors;
  const auto &entries = walk_.routine.entries;
  bool begins = before.empty() || before.size() > kMaxPaths || piece.dispatched ||
                std::find(entries.begin(), entries.end(), piece.leader) != entries.end();
  for (size_t i = 0; !begins && i < before.size(); i++)
    begins = std::find(back_.begin(), back_.end(), before[i]) != back_.end();
  begins |= ways_.size() >= kMaxPaths;
  if (begins || !blocks) {
    ways_.push_back(path());
    return !begins;
  }
  bool are_longer = false;
  for (uint32_t predecessor : before) {
    back_.push_back(predecessor);
    are_longer |= find_ways(blocks - 1);
    back_.pop_back();
  }
  return are_longer;
}

// From the last of `back_` to the first.
Path IndirectJumps::path() const {
  Path path{&constants_[back_.back()], {}};
  for (size_t i = back_.size(); i-- > 0;) {
    const Instruction &last = last_of(pieces_[back_[i]]);
    const bool is_taken =
        i > 0 && last.flow == Flow::branch && last.target() == pieces_[back_[i - 1]].leader;
    path.pieces[path.count++] = {instructions_of(pieces_[back_[i]]), is_taken};
  }
  return path;
}

ResolvedJump IndirectJumps::resolve(uint32_t piece, SymbolicPath &way) {
  auto is_target = [&](uint64_t target, bool bounded) {
    return is_jump_target(target) && (bounded || is_likely_target(target));
  };
  auto hole = [&](uint64_t target) { return is_hole(target); };
  auto limit = [&](uint64_t table) { // the next one
    auto next = table_addresses_.upper_bound(table);
    return next == table_addresses_.end() ? UINT64_MAX : *next;
  };
  // Short ways first: a bound that all of them have is enough.
  ResolvedJump best;
  bool are_longer = true;
  for (unsigned blocks = 0; are_longer && blocks <= kMaxPathBlocks; blocks++) {
    ways_.clear();
    back_.assign(1, piece);
    are_longer = find_ways(blocks);
    ResolvedJump found = resolve_jump(way, ways_, is_target, hole, limit);
    // Bounded, and an entry makes no sense: a longer table without a bound would make less.
    if (found.table.bounded)
      return found;
    if (blocks == 0 || (best.kind != JumpKind::table && found.kind == JumpKind::table))
      best = std::move(found);
  }
  return best;
}

bool IndirectJumps::have_read_too_far() const {
  return std::any_of(jumps.begin(), jumps.end(), [&](const auto &each) {
    const auto &[address, jump] = each;
    const JumpTable &table = jump.table;
    auto next = table_addresses_.upper_bound(table.address);
    if (jump.kind == JumpKind::table && !table.bounded && next != table_addresses_.end() &&
        *next < table.address + uint64_t{table.entries} * table.entry_bytes)
      return true;
    const auto *followed = walk_.targets_of(jump.instruction);
    return followed && std::any_of(followed->begin(), followed->end(), [&](uint64_t target) {
             return !std::binary_search(table.targets.begin(), table.targets.end(), target);
           });
  });
}

// Into this routine, or into a part of it that does not jump back and so was not seen to belong; of
// such parts nothing but unwind tables is known in files without symbols.
bool IndirectJumps::is_jump_target(uint64_t target) const {
  if (walk_.routine.contains(target))
    return true;
  const image::CodeRange *range = walk_.program.executable().function_at(target);
  return range && (range->name.find(".cold") != std::string::npos ||
                   range->found_by == image::FoundBy::unwind);
}

bool IndirectJumps::is_likely_target(uint64_t address) {
  if (walk_.routine.contains(address))
    return walk_.may_begin_instruction(address);
  // A moved part is not aligned; what is, is a function that a table of pointers leads to.
  const image::CodeRange *part = walk_.program.executable().function_at(address);
  return part && part->begin == address && address % 16;
}

// clang fills entries that no index leads to with the place of a block that is not there: the end.
bool IndirectJumps::is_hole(uint64_t target) const {
  return std::any_of(walk_.routine.ranges.begin(), walk_.routine.ranges.end(),
                     [&](const image::CodeRange &range) { return range.end == target; });
}

std::vector<uint64_t> IndirectJumps::made_labels() const {
  std::vector<uint64_t> labels;
  const image::Executable &executable = walk_.program.executable();
  const auto &entries = walk_.routine.entries;
  for (const Instruction &instruction : walk_.code.instructions) {
    if (instruction.is_call()) // makes the address behind itself
      continue;
    for (const assay_uop &uop : walk_.code.uops_of(instruction)) {
      bool is_address =
          uop.op == ASSAY_UOP_lea && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO;
      bool is_constant = uop.op == ASSAY_UOP_or && uop.a == ASSAY_REG_ZERO && has_immediate(uop) &&
                         !executable.position_independent();
      uint64_t label =
          is_address ? static_cast<uint64_t>(int64_t{uop.i}) : static_cast<uint64_t>(uop.imm);
      if ((is_address || is_constant) && walk_.routine.contains(label) &&
          std::find(entries.begin(), entries.end(), label) == entries.end())
        labels.push_back(label);
    }
  }
  return labels;
}

// Labels of this routine whose address lies in the file's data, or is made by an instruction of it. In
// files that are not position independent such a word may be any number: it is a label only
// where an instruction can begin.
std::vector<uint64_t> IndirectJumps::pointed_labels() {
  const image::Executable &executable = walk_.program.executable();
  auto may_be_one = [&](uint64_t label) {
    return executable.position_independent() || walk_.may_begin_instruction(label);
  };
  std::vector<uint64_t> labels = made_labels();
  std::erase_if(labels, [&](uint64_t label) { return !may_be_one(label); });
  // A stub's word leads back to the stub until the loader has bound it.
  for (uint32_t jump : walk_.indirect_jumps())
    for (const assay_uop &uop : walk_.code.uops_of(walk_.code.instructions[jump]))
      if (uop.op == ASSAY_UOP_load && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO)
        if (auto word = executable.read<uint64_t>(static_cast<uint64_t>(int64_t{uop.i}));
            word && walk_.routine.contains(*word) && walk_.may_begin_instruction(*word))
          labels.push_back(*word);
  for (const image::CodeRange &range : walk_.routine.ranges)
    std::ranges::copy_if(behind_begin(executable.code_pointers(), range),
                         std::back_inserter(labels), may_be_one);
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

bool IndirectJumps::resolve() {
  if (walk_.indirect_jumps().empty())
    return false;
  find_pieces();
  find_constants();
  SymbolicPath way(walk_.program.executable(), walk_.code); // most routines need none
  bool any = false, through_pointers = false;
  for (uint32_t piece = 0; piece < pieces_.size(); piece++) {
    uint32_t index = instructions_[pieces_[piece].end - 1];
    uint64_t address = walk_.code.instructions[index].address;
    if (walk_.code.instructions[index].flow != Flow::indirect_jump)
      continue;
    ResolvedJump resolved = resolve(piece, way);
    const auto &targets_found = resolved.table.targets;
    if (resolved.kind == JumpKind::table && !resolved.table.bounded &&
        resolved.table.entry_bytes == 8 &&
        std::none_of(targets_found.begin(), targets_found.end(),
                     [&](uint64_t target) { return walk_.routine.contains(target); }))
      resolved = {JumpKind::pointer}; // of functions
    IndirectJump &jump = jumps[address];
    jump.instruction = index;
    jump.kind = resolved.kind;
    jump.table = std::move(resolved.table);
    if (jump.kind == JumpKind::table) {
      jump.table.jump = address;
      if (resolved.begin)
        table_addresses_.insert(*resolved.begin);
      std::vector<uint64_t> targets;
      for (uint64_t target : jump.table.targets)
        if (walk_.routine.contains(target))
          targets.push_back(target);
      any |= walk_.add_targets(index, targets);
    }
    through_pointers |= jump.kind == JumpKind::pointer;
  }
  // Found anew if there is more code. To keep them beside the graph would take memory, as assigning {} does.
  pieces_ = std::vector<Piece>();
  instructions_ = std::vector<uint32_t>();
  constants_ = std::vector<Constants>();
  if (through_pointers) {
    std::vector<uint64_t> labels = pointed_labels();
    any |= labels != labels_;
    labels_ = std::move(labels);
    for (uint64_t label : labels_)
      walk_.reach(label);
  }
  return any;
}

} // namespace binary
