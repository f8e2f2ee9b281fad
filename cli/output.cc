// Where answers go. Text is made whole and then written, so that a failure leaves nothing half done
// on standard output; JSON, which may be larger than memory, when everything that may fail is done.

#include "cli/output.h"

#include "abi/container.h"
#include "base/fail.h"
#include "base/output_file.h"
#include "base/units.h"
#include "profile/find_profiles.h"
#include "report/page.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <unistd.h>

namespace cli {

std::vector<std::string> AnswerOptions::files() const {
  return profile::find_profiles(profiles);
}

report::Style AnswerOptions::style() const {
  return report::style_for(output == "-" ? STDOUT_FILENO : -1);
}

void add_format_options(CommandLine line, AnswerOptions &options) {
  line.add_option("--format", options.format, "text, json or html: one file for a browser")
      .shows_default();
  line.add_flag("--json", [&options] { options.format = "json"; }, "short for --format json");
  line.add_option("-o,--output", options.output, "write to this file; - is standard output");
}

void add_answer_options(CommandLine line, AnswerOptions &options, const AnswerRows &rows) {
  add_unsorted_answer_options(line, options, rows);
  line.add_option("--sort", options.sort, "one table, in the order of this key (below)");
}

void add_unsorted_answer_options(CommandLine line, AnswerOptions &options, const AnswerRows &rows) {
  line.add_option(
      "PROFILE,-i", options.profiles,
      "a .assay file, a run's folder, or a folder of runs, of which the latest is taken "
      "(default: assay.out)");
  add_format_options(line, options);
  line.add_option("--top", options.top, rows.top);
  line.add_option("--filter", options.filter,
                  std::string("only ") + rows.filtered + " that matches this regular expression")
      .may_be_empty();
}

void add_wrapper_option(CommandLine line, std::vector<std::string> &wrappers) {
  line.add_option(
          "--wrapper", wrappers,
          "functions that match this regular expression own no allocation, their callers do; "
          "may be repeated")
      .takes_one_word(); // what follows is a profile
}

void say_unmatched(const analyze::Wrappers &wrappers) {
  for (const std::string &pattern : wrappers.unmatched())
    fmt::print(
        stderr,
        "assay: --wrapper '{}' changes nothing: no function that it matches stands between an "
        "allocation and its owner; check the name\n",
        report::printable(pattern));
}

void add_cache_option(CommandLine line, std::vector<std::string> &caches) {
  line.add_option("--cache", caches,
                  "also ask whether it fits into NAME=SIZE, such as TLB=6MiB; may be repeated")
      .takes_one_word(); // what follows is a profile
}

std::vector<std::pair<std::string, uint64_t>> caches_of(const std::vector<std::string> &words) {
  std::vector<std::pair<std::string, uint64_t>> caches;
  for (const std::string &word : words) {
    size_t equals = word.find('=');
    std::string size = equals == std::string::npos ? word : word.substr(equals + 1);
    std::string name = equals == std::string::npos ? size : word.substr(0, equals);
    if (name.empty() || size.empty() || base::parse_bytes(size, "--cache") == 0)
      base::fail("--cache '{}': say NAME=SIZE, or a SIZE, such as TLB=6MiB", word);
    caches.emplace_back(name, base::parse_bytes(size));
  }
  return caches;
}

void check_format(const AnswerOptions &options) {
  if (options.format == "html") {
    if (options.output == "-" && isatty(STDOUT_FILENO))
      base::fail(
          "--format html: a page is for a browser; name a file for it, such as -o report.html");
  } else if (options.format != "text" && options.format != "json") {
    base::fail("--format {}: there is no such format; use text, json or html", options.format);
  }
}

void write_output(const std::string &path, const std::string &text) {
  write_output(path, [&text](const report::Sink &sink) { sink(text); });
}

namespace {

// Answers do not take the place of what was measured, or of a program: -o comes before the profile,
// and is easily left out.
void refuse_to_destroy(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path,
                                        ignored)) // to open a pipe would wait for its other end
    return;
  std::ifstream file(path, std::ios::binary);
  char begin[8] = {};
  if (!file.read(begin, sizeof begin))
    return;
  const bool is_ours = std::memcmp(begin, ASSAY_FILE_MAGIC, sizeof begin) == 0;
  if (is_ours || std::memcmp(begin, "\177ELF", 4) == 0)
    base::fail("{}: it is {}, which the answer would destroy; name another file with -o", path,
               is_ours ? "a profile or a trace" : "a program");
}

void write_to_standard_output(const std::function<void(const report::Sink &)> &produce) {
  struct NotWritten {}; // leaves `produce`, which may have gigabytes to come
  bool written = true;
  try {
    produce([](std::string_view piece) {
      if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size())
        throw NotWritten();
    });
    written = std::fflush(stdout) == 0;
  } catch (const NotWritten &) {
    written = false;
  }
  if (!written && errno == EBADF)
    base::fail("standard output: it is closed; send it to a file or a pipe, or leave it open");
  if (!written && errno != EPIPE)
    base::fail("standard output: it cannot be written: {}; {}", std::strerror(errno),
               base::remedy_for_writing(errno));
}

} // namespace

void check_place(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path == "-")
    return;
  if (fs::is_directory(path, ignored))
    base::fail("-o {}: it is a folder; name a file", path);
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  const bool is_device = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
  if (access(is_device ? path.c_str() : (folder / ".").c_str(), W_OK) != 0)
    base::fail("-o {}: its folder cannot be written: {}; choose another place", path,
               std::strerror(errno));
}

void check_output(const std::string &path) {
  check_place(path);
  refuse_to_destroy(path);
}

void write_output(const std::string &path,
                  const std::function<void(const report::Sink &)> &produce) {
  // Only now: a program that assay starts must not inherit an ignored signal.
  std::signal(SIGPIPE, SIG_IGN);
  if (path == "-") {
    write_to_standard_output(produce);
    return;
  }
  refuse_to_destroy(path);
  base::OutputFile file(path);
  produce([&file](std::string_view piece) { file.write(std::as_bytes(std::span(piece))); });
  file.commit();
}

void write_document(const AnswerOptions &options, const report::Document &document,
                    const std::vector<report::Document> &programs) {
  if (options.format == "html")
    write_output(options.output, report::html_page(document, programs));
  else
    write_output(options.output, [&](const report::Sink &sink) {
      report::write_document(document, programs, sink);
    });
}

void write_document(const AnswerOptions &options, const report::Json &document) {
  write_output(options.output, options.format == "html" ? report::html_page(document)
                                                        : report::document_text(document));
}

} // namespace cli
