// `assay trace skeleton`: what is left of a program to compute its accesses, as C.

#include "base/fail.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "cli/child.h"
#include "cli/trace_parts.h"
#include "cli/traced_program.h"
#include "trace/skeleton_program.h"

#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace cli {
namespace {

struct SkeletonArguments {
  std::string trace, folder;
};

int skeleton(const SkeletonArguments &arguments) {
  if (arguments.folder.empty())
    base::fail("-o FOLDER: say where the program is to be written");
  const trace::Trace trace(trace_file_of(arguments.trace));
  if (!trace.damage().empty())
    std::fprintf(stderr, "assay: %s\n", trace.damage().c_str());
  const trace::SkeletonProgram written =
      trace::write_skeleton_program(trace, installed_folder() / "skeleton", arguments.folder);
  fmt::print(
      stderr,
      "assay: {}: {} in {}, {} of values\n"
      "  {} && {}\n",
      arguments.folder, base::with_noun(written.functions, "function"),
      base::with_noun(written.files, "file"), base::format_bytes(double(written.bytes_of_values)),
      base::shell_command(Words{"make", "-j2", "-C", arguments.folder}),
      base::shell_command(Words{arguments.folder + "/skeleton", arguments.folder + "/values"}));
  return 0;
}

} // namespace

Action define_trace_skeleton(CommandLine line) {
  auto arguments = std::make_shared<SkeletonArguments>();
  line.add_option("DIR", arguments->trace,
                  "folder of the trace (default: the latest in assay.out)");
  line.add_option("-o,--output", arguments->folder, "folder of the program in C");
  line.set_footer("\nExamples:\n  assay trace skeleton -o skeleton && make -j2 -C skeleton\n  "
                  "skeleton/skeleton --count skeleton/values\n");
  return [arguments](const Words &) { return skeleton(*arguments); };
}

} // namespace cli
