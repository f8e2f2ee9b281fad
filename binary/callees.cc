// The ABI says which registers a function keeps, and most do. Assembly that is called by assembly does
// not, nor do the functions of OCaml and Go; and compilers that see both sides let callers keep values
// in registers that the ABI would give away. So direct callees are looked into: their graph, and where
// the registers' values come from at all of their exits (binary/origins.h). What is not understood
// is judged by the exits that are seen, and keeps nothing but the stack pointer if there are none.
//
// Callees may call their callers. All are taken to keep what the ABI says first, with what each exit
// trusts of calls remembered, and what does not hold is taken away until nothing changes: what then is
// left is true of every call that comes back, by induction over its depth.
//
// Calls through pointers and into other files are taken at the ABI's word, but for those registers
// that routines of this file whose address is taken change: a sample of them says in which language
// they are written. To look into all of them was refused: that is the whole of a C++ library whenever
// one function is asked for.

#include "binary/callees.h"

#include "binary/flow_graph.h"
#include "binary/origins.h"
#include "binary/program.h"

#include <algorithm>

namespace binary {

constexpr size_t kSample = 256;

Callees::Callees(const Program &program)
    : program_(program), decoder_(std::make_unique<Decoder>()), locals_(program.routines().size()) {
}
Callees::~Callees() = default;

uint32_t Callees::callee_at(uint64_t address) const {
  const Routine *routine = program_.routine_at(address);
  if (!routine)
    return kUnknown;
  if (routine->ranges.front().found_by == image::FoundBy::plt)
    return kImport;
  return static_cast<uint32_t>(routine - program_.routines().data());
}

static bool is_end(const Routine &routine, uint64_t address) {
  return std::any_of(routine.ranges.begin(), routine.ranges.end(),
                     [&](const image::CodeRange &range) { return range.end == address; });
}

void Callees::look_at(uint32_t which, Decoder &decoder) {
  Local &local = locals_[which];
  local.known = true;
  local.kept = register_bit(ASSAY_REG_RSP);
  const Routine &routine = program_.routines()[which];
  FlowGraph graph = flow_graph(program_, routine, decoder, Calls::believed);
  std::vector<Exit> exits = exits_of(graph);
  if (graph.why_not == WhyNot::understood)
    for (const Exit &exit : exits)
      if (exit.flow == Flow::ret && exit.stack_is_back)
        local.back &= exit.back;
  bool returns = std::any_of(exits.begin(), exits.end(),
                             [](const Exit &exit) { return exit.flow == Flow::ret; });
  if (graph.why_not != WhyNot::understood && !returns)
    return;
  for (const Instruction &instruction : graph.code.instructions)
    if (instruction.flow == Flow::call)
      local.calls.push_back(callee_at(instruction.target()));
    else if (instruction.flow == Flow::indirect_call)
      local.calls.push_back(kPointer);
  local.kept = kAllRegisters;
  for (const Exit &exit : exits) {
    bool stays = exit.flow == Flow::indirect_jump &&
                 !graph.is_tail_jump(graph.last_of(graph.blocks[exit.block]));
    // With the frame in place: a part that reports an error and never comes back, which compilers share
    // between functions; or the end of a path that is never taken, at the end of the function.
    bool nowhere = exit.flow == Flow::jump && !exit.stack_is_back && !exit.stack_is_unknown &&
                   (callee_at(exit.target) == kUnknown || program_.never_returns(exit.target) ||
                    is_end(routine, exit.target));
    if (stays || nowhere)
      continue;
    // What comes back at all has found its return address where the stack pointer was.
    local.kept &=
        exit.back | (exit.stack_is_unknown ? register_bit(ASSAY_REG_RSP) : RegisterSet{0});
    for (unsigned reg = 0; reg < 16; reg++)
      local.trust[reg] |= exit.trust[reg];
    if (exit.flow == Flow::indirect_jump)
      local.tails.push_back(kPointer);
    else if (exit.flow == Flow::jump)
      local.tails.push_back(callee_at(exit.target));
  }
  if (!(local.kept & register_bit(ASSAY_REG_RSP)))
    local.kept = 0;
  for (auto *list : {&local.calls, &local.tails}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

RegisterSet Callees::kept_by_callee(uint32_t callee) {
  switch (callee) {
  case kUnknown: return register_bit(ASSAY_REG_RSP);
  case kImport: return kKeptByFunctions;
  case kPointer: return kept_by_pointers();
  default: return locals_[callee].kept;
  }
}

void Callees::settle(const std::vector<uint32_t> &routines) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = routines.rbegin(); at != routines.rend(); ++at) { // callees mostly come first
      Local &local = locals_[*at];
      RegisterSet calls = kAllRegisters;
      for (uint32_t callee : local.calls)
        calls &= kept_by_callee(callee);
      RegisterSet kept = local.kept;
      for (unsigned reg = 0; reg < 16; reg++)
        if (local.trust[reg] & ~calls)
          kept &= static_cast<RegisterSet>(~register_bit(reg));
      for (uint32_t callee : local.tails)
        kept &= kept_by_callee(callee);
      changed |= kept != local.kept;
      local.kept = kept;
    }
  }
  for (uint32_t routine : routines)
    locals_[routine].final = true;
}

const Callees::Local &Callees::known(uint32_t routine) {
  if (!locals_[routine].known)
    look_at(routine, *decoder_);
  return locals_[routine];
}

void Callees::look_into(uint32_t routine) {
  std::vector<uint32_t> found{routine};
  locals_[routine].found = true;
  for (size_t i = 0; i < found.size(); i++)
    for (const Local &local = known(found[i]); const auto *list : {&local.calls, &local.tails})
      for (uint32_t callee : *list)
        if (callee < kPointer && !locals_[callee].found) {
          locals_[callee].found = true;
          found.push_back(callee);
        }
  settle(found);
}

void Callees::look_into_all(unsigned threads) {
  std::vector<Decoder> decoders(threads);
  program_.for_each_routine(threads, [&](uint32_t which, unsigned thread) {
    if (!locals_[which].known)
      look_at(which, decoders[thread]);
  });
  kept_by_pointers();
  for (uint32_t which = 0; which < locals_.size(); which++)
    if (!locals_[which].final)
      look_into(which);
}

RegisterSet Callees::kept_by(uint64_t address) {
  uint32_t callee = callee_at(address);
  if (callee < kPointer && !locals_[callee].final)
    look_into(callee);
  return kept_by_callee(callee);
}

RegisterSet Callees::kept_by_pointers() {
  if (by_pointers_)
    return *by_pointers_;
  by_pointers_ = kKeptByFunctions; // while it is asked for
  std::vector<uint32_t> taken;
  const auto &routines = program_.routines();
  for (uint64_t pointer : program_.executable().code_pointers())
    if (const Routine *routine = program_.routine_at(pointer);
        routine && routine->address() == pointer &&
        routine->ranges.front().found_by != image::FoundBy::plt)
      taken.push_back(static_cast<uint32_t>(routine - routines.data()));
  RegisterSet kept = kKeptByFunctions;
  size_t step = std::max<size_t>(1, taken.size() / kSample);
  for (size_t i = 0; i < taken.size(); i += step)
    kept &= known(taken[i]).back;
  kept |= register_bit(ASSAY_REG_RSP);
  by_pointers_ = kept;
  return kept;
}

} // namespace binary
