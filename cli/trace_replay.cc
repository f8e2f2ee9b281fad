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
#include <optional>
#include <span>

namespace cli {
namespace {

struct AskArguments {
  AnswerOptions answer;
  std::string folder;
};

struct ReplayArguments {
  std::string folder, format = "text";
  bool by_thread = false;
};

// lackey's lines: pc kind address,size; L, S, M.
class TextOutput : public profile::AccessSink {
public:
  TextOutput(const trace::Trace &trace, std::FILE *to) : trace_(trace), to_(to) {}
  ~TextOutput() override { print_read(); }
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    if (origin.stream != stream_ || !has_stream_) {
      print_read();
      fmt::print(to_, "# thread {}\n", origin.thread);
    }
    stream_ = origin.stream;
    has_stream_ = true;
    for (const profile::Access &each : batch) {
      if (read_ && each.is_write && each.address == read_->address && each.size == read_->size &&
          is_same(trace_.sites()[each.site], trace_.sites()[read_->site])) {
        read_.reset();
        print(each, 'M');
        continue;
      }
      print_read();
      if (each.is_write)
        print(each, 'S');
      else
        read_ = each;
    }
  }

private:
  static bool is_same(const profile::AccessSite &a, const profile::AccessSite &b) {
    return a.offset == b.offset && a.file == b.file;
  }
  void print_read() {
    if (read_)
      print(*read_, 'L');
    read_.reset();
  }
  void print(const profile::Access &access, char kind) {
    fmt::print(to_, "{:x} {} {:x},{}\n", trace_.sites()[access.site].offset, kind, access.address,
               access.size);
  }

  const trace::Trace &trace_;
  std::FILE *to_;
  uint32_t stream_ = 0;
  bool has_stream_ = false;
  std::optional<profile::Access>
      read_; // of which it is not known yet whether its instruction writes as well
};

int replay(const ReplayArguments &arguments) {
  const trace::Trace trace(trace_file_of(arguments.folder));
  if (!trace.damage().empty())
    std::fprintf(stderr, "assay: %s\n", trace.damage().c_str());
  if (arguments.format != "text")
    base::fail("--format {}: choose text", arguments.format);
  TextOutput output(trace, stdout);
  if (arguments.by_thread)
    trace.replay_by_thread(output);
  else
    trace.replay(output);
  return 0;
}

int info(const AskArguments &arguments) {
  check_format(arguments.answer);
  const trace::Trace trace(trace_file_of(arguments.folder));
  analyze::AccessCounts counts;
  const trace::LoggedCounts logged = trace.replay(counts);
  analyze::TracedProgram program = traced_program(trace);
  program.values = logged.values;
  program.branches = logged.branches;
  const analyze::AccessPlaces places(program);
  write_output(arguments.answer.output,
               arguments.answer.json()
                   ? report::document_text(report::trace_info_json(program, places, counts))
                   : report::trace_info_text(program, places, counts, 20));
  return 0;
}

} // namespace

Action define_trace_replay(CLI::App &app) {
  auto arguments = std::make_shared<ReplayArguments>();
  app.add_option("DIR", arguments->folder,
                 "folder of the trace (default: the latest in assay.out)");
  app.add_option("--format", arguments->format, "text (text)");
  app.add_flag("--by-thread", arguments->by_thread, "one thread after the other");
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
