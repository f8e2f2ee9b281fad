// Analyses take one description of a program, whether it was stored or has just run. A Trace and
// LiveAccesses have no base class, but name the same things alike: one template reads both, and
// what only one of them knows is added afterwards.
//
// The latest trace of a folder is the last one by name, because names begin with the time.

#include "cli/traced_program.h"

#include "base/fail.h"
#include "base/shell_words.h"
#include "profile/find_profiles.h"

#include <filesystem>

namespace cli {
namespace {

namespace fs = std::filesystem;

analyze::TracedModule module_of(const trace::TracedFile &file,
                                const std::vector<trace::MovedFunction> &functions) {
  analyze::TracedModule module;
  module.number = file.number;
  module.path = file.path;
  module.build_id = file.build_id;
  module.is_traced = file.is_moved;
  module.why_not = file.why_not;
  for (const trace::MovedFunction &from : functions) {
    analyze::TracedFunction &to = module.functions.emplace_back();
    to.linkage_name = from.name;
    to.address = from.address;
    to.is_traced = from.why == trace::WhyUnmoved::moved;
    to.is_stub = from.why == trace::WhyUnmoved::stub;
    if (!to.is_traced)
      to.why_not = trace::why_unmoved_meaning(from.why);
    to.accesses = from.accesses;
    to.logged = from.logged;
    to.values = from.values;
    for (const trace::MovedFunction::Part &part : from.apart)
      to.apart.push_back(part.begin);
  }
  return module;
}

// Of a Trace or LiveAccesses.
template <class From> analyze::TracedProgram program_of(const From &from) {
  analyze::TracedProgram program;
  for (size_t file = 0; file < from.files().size(); file++)
    program.modules.push_back(module_of(from.files()[file], from.functions_of(file)));
  program.sites = from.sites();
  program.has_ended = from.end().has_value();
  if (from.end())
    program.untraced_threads = from.end()->untraced_threads;
  return program;
}

} // namespace

std::string trace_file_of(const std::string &given) {
  if (!given.empty() && fs::is_regular_file(given))
    return given;
  const fs::path folder = given.empty() ? fs::path(profile::kDefaultFolder) : fs::path(given);
  if (fs::is_regular_file(folder / kTraceFile))
    return folder / kTraceFile;
  std::string latest;
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder, error))
    if (fs::is_regular_file(entry.path() / kTraceFile) && entry.path().string() > latest)
      latest = entry.path().string();
  if (latest.empty() && profile::has_profile(folder.string()))
    base::fail("{}: it holds a profile, which `assay report {}` reads, and no trace; make one "
               "with `assay trace record -- ./app`",
               folder.string(), base::shell_word(folder.string()));
  if (latest.empty())
    base::fail("{}: there is no trace; make one with `assay trace record -- ./app`",
               folder.string());
  return fs::path(latest) / kTraceFile;
}

void add_interleave(CommandLine line, bool &interleave) {
  line.add_flag("--interleave", interleave,
                "threads in the order of time, as far as it is known: a plausible order");
}

trace::ThreadOrder order_of(bool interleave) {
  return interleave ? trace::ThreadOrder::by_time : trace::ThreadOrder::by_buffers;
}

analyze::TracedProgram traced_program(const trace::Trace &trace) {
  analyze::TracedProgram program = program_of(trace);
  program.command = trace.command();
  program.parts = trace.parts();
  program.damage = trace.damage();
  program.logged_bytes = trace.logged_bytes();
  program.stored_bytes = trace.file_bytes();
  return program;
}

analyze::TracedProgram traced_program(const trace::LiveAccesses &live,
                                      const std::vector<std::string> &command) {
  analyze::TracedProgram program = program_of(live);
  program.command = command;
  if (live.end())
    program.logged_bytes = live.end()->logged_bytes;
  return program;
}

} // namespace cli
