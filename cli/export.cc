// `assay export --format FORMAT -o FILE [PROFILE…]`: a profile in the form of another program.
//
// Formats are a table, from which --format is looked up and the help is made. A profile that has
// nothing over time is refused with what to build, because its trace would be empty.

#include "analyze/heap.h"
#include "analyze/workingset.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"
#include "report/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace cli {
namespace {

struct ExportArguments {
  std::vector<std::string> profiles;
  std::string format, output = "-";
  unsigned top = 10;
};

std::string perfetto(const ExportArguments &arguments) {
  profile::Profile profile = profile::read(profile::find_profiles(arguments.profiles));
  image::Symbols symbols = image::open(analyze::module_files(profile));
  auto sets = analyze::workingsets(profile, symbols, {});
  if (sets.empty() && std::none_of(profile.processes.begin(), profile.processes.end(),
                                   [](auto &process) { return !process.timeline.empty(); }))
    base::fail("export: this profile has nothing over time; build the program with "
               "-fassay=workingset, and run it again");
  return report::document_text(report::perfetto_trace(profile, sets, arguments.top));
}

struct Format {
  const char *name, *for_what;
  std::string (*text)(const ExportArguments &);
};
constexpr Format kFormats[] = {
    {"perfetto", "working set, heap, phases and marks over time, for ui.perfetto.dev", perfetto},
};

int export_profile(const ExportArguments &arguments) {
  std::string names;
  for (const Format &format : kFormats) {
    if (arguments.format == format.name) {
      write_output(arguments.output, format.text(arguments));
      return 0;
    }
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  base::fail("--format {}: assay export does not have it; there is {}", arguments.format, names);
}

} // namespace

Action define_export(CommandLine line) {
  auto arguments = std::make_shared<ExportArguments>();
  line.add_option(
      "PROFILE,-i", arguments->profiles,
      "a .assay file, a run's folder, or a folder of runs, of which the latest is taken "
      "(default: assay.out)");
  line.add_option("--format", arguments->format, "the form of the output, see below").required();
  line.add_option("-o,--output", arguments->output, "write to this file; - is standard output");
  line.add_option("--top", arguments->top, "owners of lines with a track of their own")
      .shows_default();
  std::string formats;
  for (const Format &format : kFormats)
    formats += fmt::format("  {:<12}{}\n", format.name, format.for_what);
  line.set_footer(
      "\nFormats:\n" + formats +
      "\nExamples:\n  assay export --format perfetto -o trace.json\n  assay export --format "
      "perfetto --top 3 -o trace.json assay.out\n");
  return [arguments](const Words &) { return export_profile(*arguments); };
}

} // namespace cli
