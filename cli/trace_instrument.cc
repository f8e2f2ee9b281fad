// `assay trace instrument`: a statically linked program that can be traced.

#include "base/fail.h"
#include "base/shell_words.h"
#include "cli/child.h"
#include "cli/trace_parts.h"
#include "trace/static_program.h"

#include <cstdio>
#include <memory>
#include <string>

namespace cli {
namespace {

struct InstrumentArguments {
  std::string program, to;
};

int instrument(const InstrumentArguments &arguments) {
  if (arguments.program.empty())
    base::fail("trace instrument: which program? write `assay trace instrument ./app -o ./app2`");
  if (arguments.to.empty())
    base::fail("-o FILE: say where the program is to be written");
  trace::write_static_program(arguments.program, installed_folder() / "libassay_carried.so",
                              arguments.to);
  const bool is_found =
      arguments.to.find('/') != std::string::npos; // else it is looked for in PATH
  std::fprintf(stderr, "assay: next: assay trace record -- %s\n",
               base::shell_word((is_found ? "" : "./") + arguments.to).c_str());
  return 0;
}

} // namespace

Action define_trace_instrument(CommandLine line) {
  auto arguments = std::make_shared<InstrumentArguments>();
  line.add_option("EXE", arguments->program, "a statically linked executable");
  line.add_option("-o,--output", arguments->to, "the file to write");
  line.set_footer("\nExamples:\n  assay trace instrument ./app -o ./app2\n  assay trace record -- "
                  "./app2 --its-own-option\n");
  return [arguments](const Words &) { return instrument(*arguments); };
}

} // namespace cli
