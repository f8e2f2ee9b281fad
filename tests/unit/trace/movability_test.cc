// What is said of a function is what is done with it, and a graph that is damaged on purpose is not moved. On the
// routines of a library that this program has loaded.

#include "trace/movability.h"

#include "trace/moved_code.h"

#include <gtest/gtest.h>

#include <Zydis/Zydis.h>
#include <dlfcn.h>

#include <map>
#include <set>
#include <string>

namespace trace {
namespace {

std::string path_of(void *function) {
  Dl_info found;
  return dladdr(function, &found) ? found.dli_fname : "";
}

const binary::Program &decoder_library() {
  static const binary::Program program{
      image::Executable(path_of(reinterpret_cast<void *>(&ZydisDecoderInit)))};
  return program;
}

TEST(Movability, WhatIsSaidIsWhatIsDone) {
  const binary::Program &program = decoder_library();
  const Movability movability(program);
  std::map<uint64_t, WhyUnmoved> said;
  binary::Decoder decoder;
  for (const binary::Routine &routine : program.routines())
    said[routine.address()] =
        movability.of(routine, binary::flow_graph(program, routine, decoder)).why;
  size_t moved = 0;
  for (const MovedFunction &function : move_code(program, MoveSettings()).functions) {
    EXPECT_EQ(said.at(function.address), function.why) << function.name;
    moved += function.why == WhyUnmoved::moved;
  }
  EXPECT_GT(2 * moved, said.size());
}

TEST(Movability, WhatStandsInTheWayIsFound) {
  const binary::Program &program = decoder_library();
  const Movability movability(program);
  binary::Decoder decoder;
  size_t asked = 0;
  for (const binary::Routine &routine : program.routines()) {
    const binary::FlowGraph graph = binary::flow_graph(program, routine, decoder);
    if (movability.of(routine, graph).why != WhyUnmoved::moved)
      continue;
    SCOPED_TRACE(routine.name());
    binary::FlowGraph lost = graph;
    lost.why_not = binary::WhyNot::unresolved_jump;
    EXPECT_EQ(movability.of(routine, lost).why, WhyUnmoved::not_understood);
    binary::Routine entered_nowhere = routine;
    entered_nowhere.entries.push_back(routine.address() + 1); // no block begins there
    EXPECT_EQ(movability.of(entered_nowhere, graph).why, WhyUnmoved::no_room);
    binary::FlowGraph overlapping = graph;
    binary::Instruction within = graph.code.instructions.front();
    within.address++;
    if (within.length > 1) {
      overlapping.code.instructions.push_back(within);
      EXPECT_EQ(movability.of(routine, overlapping).why, WhyUnmoved::overlaps);
    }
    if (++asked == 100)
      break;
  }
  EXPECT_EQ(asked, 100u);
}

TEST(Movability, NamesAndMeaningsDiffer) {
  std::set<std::string> names, meanings;
  constexpr auto kCount = static_cast<size_t>(WhyUnmoved::count);
  for (size_t why = 0; why < kCount; why++) {
    names.insert(why_unmoved_name(static_cast<WhyUnmoved>(why)));
    meanings.insert(why_unmoved_meaning(static_cast<WhyUnmoved>(why)));
  }
  EXPECT_EQ(names.size(), kCount);
  EXPECT_EQ(meanings.size(), kCount);
}

} // namespace
} // namespace trace
