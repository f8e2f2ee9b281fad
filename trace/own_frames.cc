// Go and OCaml are known: by Go's table of functions, by OCaml's names, which executables export.
// Of others this is known: a function that calls, and is in no unwind table although many functions
// of the file are, can be followed by nobody who does not know it by its address. So it is of the
// code that V8 keeps in its executable.
//
// Refused: to call from moved code by pushing the original return address. Processors foresee
// returns by calls, and each return site would have to be overwritten with a jump.

#include "trace/own_frames.h"

#include <algorithm>
#include <string_view>

namespace trace {
namespace {

// What OCaml's compiler makes: a module's functions (camlList__map_12), and those that are made
// when a program is linked. caml_start_program calls them from C; its frame ends their stack.
bool is_ocaml(std::string_view name) {
  constexpr std::string_view kMadeByLinking[] = {"caml_apply", "caml_curry", "caml_program",
                                                 "caml_send",  "caml_start", "caml_tuplify"};
  return (name.starts_with("caml") && name.size() > 4 && name[4] >= 'A' && name[4] <= 'Z') ||
         std::any_of(std::begin(kMadeByLinking), std::end(kMadeByLinking),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

} // namespace

OwnFrames::OwnFrames(const image::Executable &executable) {
  const auto &frames = executable.unwind_ranges();
  size_t functions = 0, covered = 0;
  for (const image::CodeRange &range : executable.functions()) {
    if (range.found_by == image::FoundBy::plt)
      continue;
    functions++;
    const auto frame =
        std::upper_bound(frames.begin(), frames.end(), range.begin,
                         [](uint64_t address, const auto &each) { return address < each.begin; });
    covered += frame != frames.begin() && std::prev(frame)->end > range.begin;
  }
  has_unwind_tables_ = 4 * covered > functions; // the C startup files of small programs have none
}

bool OwnFrames::are_of(const binary::Routine &routine, const binary::FlowGraph &graph,
                       bool has_unwind_entry) const {
  if (routine.ranges.front().found_by == image::FoundBy::go || is_ocaml(routine.name()))
    return true;
  return !has_unwind_entry && has_unwind_tables_ &&
         std::any_of(graph.code.instructions.begin(), graph.code.instructions.end(),
                     [](const binary::Instruction &each) { return each.is_call(); });
}

} // namespace trace
