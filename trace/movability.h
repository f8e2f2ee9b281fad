// Whether a function's code can be executed at another place, with other code between its
// instructions. This is the one answer: `assay trace` acts on it, `assay explain` tells it.
#pragma once

#include "binary/flow_graph.h"
#include "binary/program.h"
#include "trace/instructions.h"
#include "trace/original_jumps.h"
#include "trace/own_frames.h"

#include <cstdint>
#include <vector>

namespace trace {

// Why a function stays where it is, with its accesses unlogged; `moved` if it does not.
enum class WhyUnmoved : uint8_t {
#define ASSAY_WHY_UNMOVED(name, meaning) name,
#include "trace/why_unmoved.def"
  count,
};
// "no_room", and a sentence.
const char *why_unmoved_name(WhyUnmoved why);
const char *why_unmoved_meaning(WhyUnmoved why);

// What moving a function needs, if it can be moved.
struct MovabilityAnswer {
  WhyUnmoved why = WhyUnmoved::moved;
  std::vector<const image::UnwindRange *> frames; // the unwind entries that cover it
  OriginalJumps jumps;                            // what overwrites its original
};

// Of the functions of one executable or shared object. Several threads may ask at once.
class Movability {
public:
  // The program must outlive it, and the answers.
  explicit Movability(const binary::Program &program);

  // Of one of the program's routines, with its graph as binary::flow_graph() makes it. Never not_chosen.
  MovabilityAnswer of(const binary::Routine &routine, const binary::FlowGraph &graph) const;
  // The part of the answer that needs no graph; `moved`: the graph must be asked.
  WhyUnmoved at_first_sight(const binary::Routine &routine) const;

private:
  using Frames = std::vector<const image::UnwindRange *>;
  Frames frames_of(const binary::Routine &routine) const;
  WhyUnmoved by_graph(const binary::Routine &routine, const binary::FlowGraph &graph) const;
  bool goes_on_behind_trap(const binary::Routine &routine, const binary::FlowGraph &graph) const;
  bool has_relative_target(const binary::Instruction &instruction) const;
  bool asks_caller(const binary::Instruction &instruction, const binary::FlowGraph &graph) const;
  bool is_restartable(const binary::Routine &routine) const;
  bool catches_faults(const binary::FlowGraph &graph) const;
  bool has_computed_address(const binary::Instruction &instruction) const;

  const image::Executable &executable_;
  const OwnFrames own_frames_;
  const InstructionDecoder decoder_;
};

} // namespace trace
