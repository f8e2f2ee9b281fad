// `assay trace replay` and `assay trace info`: what a trace holds.

#include "base/fail.h"
#include "cli/output.h"
#include "cli/trace_parts.h"
#include "cli/traced_program.h"
#include "report/trace_report.h"
#include "trace/trace_file.h"

#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <span>

namespace cli {
namespace {

struct AskArguments {
  AnswerOptions answer;
  std::string folder;
};

// lackey's lines: kind pc? address,size; L, S, M.
class TextOutput : public profile::AccessSink {
public:
  TextOutput(const trace::Trace &trace, std::FILE *to) : trace_(trace), to_(to) {}
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    if (origin.stream != stream_ || !has_stream_)
      fmt::print(to_, "# thread {}\n", origin.thread);
    stream_ = origin.stream;
    has_stream_ = true;
    for (size_t i = 0; i < batch.size(); i++) {
      const profile::Access &a = batch[i];
      const bool modifies =
          i + 1 < batch.size() && !a.is_write && batch[i + 1].is_write &&
          batch[i + 1].address == a.address && batch[i + 1].size == a.size &&
          trace_.sites()[batch[i + 1].site].offset == trace_.sites()[a.site].offset;
      fmt::print(to_, "{:x} {} {:x},{}\n", trace_.sites()[a.site].offset,
                 modifies     ? 'M'
                 : a.is_write ? 'S'
                              : 'L',
                 a.address, a.size);
      i += modifies;
    }
  }

private:
  const trace::Trace &trace_;
  std::FILE *to_;
  uint32_t stream_ = 0;
  bool has_stream_ = false;
};

int replay(const AskArguments &arguments) {
  const trace::Trace trace(trace_file_of(arguments.folder));
  if (!trace.damage().empty())
    std::fprintf(stderr, "assay: %s\n", trace.damage().c_str());
  if (arguments.answer.format != "text")
    base::fail("--format {}: choose text", arguments.answer.format);
  TextOutput output(trace, stdout);
  trace.replay(output);
  return 0;
}

int info(const AskArguments &arguments) {
  check_format(arguments.answer);
  const trace::Trace trace(trace_file_of(arguments.folder));
  analyze::AccessCounts counts;
  trace.replay(counts);
  const analyze::TracedProgram program = traced_program(trace);
  const analyze::AccessPlaces places(program);
  write_output(arguments.answer.output,
               arguments.answer.json()
                   ? report::document_text(report::trace_info_json(program, places, counts))
                   : report::trace_info_text(program, places, counts, 20));
  return 0;
}

} // namespace

Action define_trace_replay(CLI::App &app) {
  auto arguments = std::make_shared<AskArguments>();
  app.add_option("DIR", arguments->folder,
                 "folder of the trace (default: the latest in assay.out)");
  app.add_option("--format", arguments->answer.format, "text (text)");
  app.footer("\nExamples:\n  assay trace replay | head\n  assay trace replay DIR > accesses.txt\n");
  return [arguments](const Words &) { return replay(*arguments); };
}

Action define_trace_info(CLI::App &app) {
  auto arguments = std::make_shared<AskArguments>();
  app.add_option("DIR", arguments->folder,
                 "folder of the trace (default: the latest in assay.out)");
  add_format_options(app, arguments->answer);
  app.footer("\nExamples:\n  assay trace info\n  assay trace info DIR\n");
  return [arguments](const Words &) { return info(*arguments); };
}

} // namespace cli
