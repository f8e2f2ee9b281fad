// `assay trace replay` and `assay trace info`: what a trace holds.

#include "base/fail.h"
#include "base/units.h"
#include "cli/trace_parts.h"
#include "profile/find_profiles.h"
#include "report/json.h"
#include "trace/trace_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace cli {
namespace {

namespace fs = std::filesystem;

struct AskArguments {
  std::string folder, format = "text";
  bool json = false;
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

// How often each instruction accesses memory, by its number among the trace's.
class Counts : public profile::AccessSink {
public:
  explicit Counts(size_t sites) : of_site(sites, 0) {}
  std::vector<uint64_t> of_site;
  uint64_t reads = 0, writes = 0;
  std::map<uint32_t, uint64_t> of_thread;
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    of_thread[origin.thread] += batch.size();
    for (const profile::Access &each : batch) {
      (each.is_write ? writes : reads)++;
      of_site[each.site]++;
    }
  }
};

struct FunctionRow {
  const trace::MovedFunction *function;
  const trace::TracedFile *file;
  uint64_t accesses = 0;
  std::string name() const {
    return function->name.empty() ? fmt::format("{:#x}", function->address) : function->name;
  }
};

// What `info` says.
class Info {
public:
  explicit Info(const trace::Trace &trace) : trace_(trace), counts_(trace.sites().size()) {
    trace.replay(counts_);
    for (size_t f = 0; f < trace.files().size(); f++)
      for (const trace::MovedFunction &function : trace.functions_of(f)) {
        rows_.push_back({&function, &trace.files()[f]});
        row_at_[{trace.files()[f].number, function.address}] = rows_.size() - 1;
      }
    for (size_t s = 0; s < counts_.of_site.size(); s++) {
      const profile::AccessSite &site = trace.sites()[s];
      auto at = row_at_.upper_bound({site.file, site.offset});
      if (at != row_at_.begin())
        rows_[std::prev(at)->second].accesses += counts_.of_site[s];
    }
    std::sort(rows_.begin(), rows_.end(), [](const FunctionRow &a, const FunctionRow &b) {
      return std::tuple(b.accesses, a.file->number, a.function->address) <
             std::tuple(a.accesses, b.file->number, b.function->address);
    });
  }

  void print_text(size_t top) const {
    const uint64_t all = counts_.reads + counts_.writes;
    fmt::print("assay trace: {}\n", fmt::join(trace_.command(), " "));
    if (!trace_.damage().empty())
      fmt::print("  {}\n", trace_.damage());
    if (!trace_.end())
      fmt::print("  the recording did not end: what was logged until then is here\n");
    else if (trace_.end()->untraced_threads)
      fmt::print("  {} threads or handlers are missing: more than {} ran at once\n",
                 trace_.end()->untraced_threads, ASSAY_RING_STREAMS);
    fmt::print("  accesses  {:>9}  {} reads, {} writes, {} threads\n",
               base::format_count(double(all)), base::format_count(double(counts_.reads)),
               base::format_count(double(counts_.writes)), counts_.of_thread.size());
    fmt::print("  logged    {:>9}  {:.2f} bytes an access\n",
               base::format_bytes(double(trace_.logged_bytes())),
               all ? double(trace_.logged_bytes()) / double(all) : 0);
    fmt::print("  stored    {:>9}  {:.3f} bytes an access\n\n",
               base::format_bytes(double(trace_.file_bytes())),
               all ? double(trace_.file_bytes()) / double(all) : 0);
    fmt::print("What is traced?\n  {:>9} {:>9} {:>10} {:>9}  file\n", "functions", "traced",
               "accesses", "logged");
    for (size_t f = 0; f < trace_.files().size(); f++) {
      const Sums sums = sums_of(f);
      const trace::TracedFile &file = trace_.files()[f];
      fmt::print("  {:>9} {:>9} {:>10} {:>9}  {}{}\n", sums.functions, sums.moved, sums.accesses,
                 sums.accesses
                     ? fmt::format("{:.1f} %", 100. * double(sums.logged) / double(sums.accesses))
                     : "-",
                 file.path, file.why_not.empty() ? "" : ": " + file.why_not);
    }
    fmt::print("  accesses, logged: of instructions, as they stand in the file\n\n");
    fmt::print("Which functions access memory most often?\n  {:>9} {:>6}  function\n", "accesses",
               "share");
    for (size_t i = 0; i < rows_.size() && i < top && rows_[i].accesses; i++)
      fmt::print("  {:>9} {:>4.1f} %  {} in {}\n", base::format_count(double(rows_[i].accesses)),
                 100. * double(rows_[i].accesses) / double(all), rows_[i].name(),
                 fs::path(rows_[i].file->path).filename().string());
    std::map<std::string, std::vector<const FunctionRow *>> unmoved;
    for (const FunctionRow &row : rows_)
      if (row.function->why != trace::WhyUnmoved::moved &&
          row.function->why != trace::WhyUnmoved::stub)
        unmoved[trace::why_unmoved_meaning(row.function->why)].push_back(&row);
    if (unmoved.empty())
      return;
    fmt::print("\nWhich functions are not traced, and why?\n");
    for (const auto &[why, functions] : unmoved) {
      fmt::print("  {:>6}  {}\n", functions.size(), why);
      for (size_t i = 0; i < functions.size() && i < 3; i++)
        fmt::print("          {} in {}\n", functions[i]->name(),
                   fs::path(functions[i]->file->path).filename().string());
    }
  }

  report::Json json() const {
    report::Json files = report::Json::array(), functions = report::Json::array();
    uint64_t static_accesses = 0, static_values = 0;
    for (size_t f = 0; f < trace_.files().size(); f++) {
      const Sums sums = sums_of(f);
      const trace::TracedFile &file = trace_.files()[f];
      static_accesses += sums.logged;
      static_values += sums.values;
      files.push_back(
          {{"path", file.path},
           {"is_traced", file.is_moved},
           {"why_not", file.why_not.empty() ? report::Json() : report::Json(file.why_not)},
           {"function_count", sums.functions},
           {"traced_function_count", sums.moved},
           {"access_count", sums.accesses},
           {"logged_access_count", sums.logged}});
    }
    for (const FunctionRow &row : rows_)
      functions.push_back(
          {{"name", row.name()},
           {"file", row.file->path},
           {"address", fmt::format("{:#x}", row.function->address)},
           {"understood", row.function->why == trace::WhyUnmoved::moved},
           {"why_not", row.function->why == trace::WhyUnmoved::moved
                           ? report::Json()
                           : report::Json(trace::why_unmoved_meaning(row.function->why))},
           {"accesses", row.accesses}});
    const uint64_t all = counts_.reads + counts_.writes;
    return {{"schema", "assay.trace/1"},
            {"modules", files},
            {"functions", functions},
            {"accesses", all},
            {"reads", counts_.reads},
            {"writes", counts_.writes},
            {"bytes", trace_.logged_bytes()},
            {"stored_bytes", trace_.file_bytes()},
            {"static_ratio", static_accesses
                                 ? report::Json(double(static_values) / double(static_accesses))
                                 : report::Json()},
            {"has_ended", trace_.end().has_value()},
            {"damage", trace_.damage().empty() ? report::Json() : report::Json(trace_.damage())}};
  }

private:
  struct Sums {
    uint64_t functions = 0, moved = 0, accesses = 0, logged = 0, values = 0;
  };
  Sums sums_of(size_t file) const {
    Sums sums;
    for (const trace::MovedFunction &function : trace_.functions_of(file)) {
      sums.functions++;
      sums.moved += function.why == trace::WhyUnmoved::moved;
      sums.accesses += function.accesses;
      sums.logged += function.logged;
      sums.values += function.values;
    }
    return sums;
  }

  const trace::Trace &trace_;
  Counts counts_;
  std::vector<FunctionRow> rows_;                          // most accesses first
  std::map<std::pair<uint32_t, uint64_t>, size_t> row_at_; // by file and address
};

int info(const AskArguments &arguments) {
  const trace::Trace trace(trace_file_of(arguments.folder));
  const Info info(trace);
  if (arguments.json || arguments.format == "json")
    fmt::print("{}\n", info.json().dump(2));
  else if (arguments.format == "text")
    info.print_text(20);
  else
    base::fail("--format {}: choose text or json", arguments.format);
  return 0;
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
  if (latest.empty())
    base::fail("{}: there is no trace; make one with `assay trace record -- ./app`",
               folder.string());
  return fs::path(latest) / kTraceFile;
}

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
  app.add_option("--format", arguments->format, "text, json (text)");
  app.add_flag("--json", arguments->json, "short for --format json");
  app.footer("\nExamples:\n  assay trace info\n  assay trace info DIR\n");
  return [arguments](const Words &) { return info(*arguments); };
}

} // namespace cli
