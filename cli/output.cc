// Where answers go. Text is made whole and then written, so that a failure leaves nothing half done
// on standard output; JSON, which may be larger than memory, when everything that may fail is done.

#include "cli/output.h"

#include "base/fail.h"
#include "base/units.h"
#include "profile/find_profiles.h"
#include "report/page.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace cli {

std::vector<std::string> AnswerOptions::files() const {
  return profile::find_profiles(profiles);
}

report::Style AnswerOptions::style() const {
  return output == "-" ? report::style_for(STDOUT_FILENO) : report::Style();
}

void add_format_options(CommandLine line, AnswerOptions &options) {
  line.add_option("--format", options.format, "text, json or html: one file for a browser")
      .shows_default();
  line.add_flag("--json", [&options] { options.format = "json"; }, "short for --format json");
  line.add_option("-o,--output", options.output, "write to this file; - is standard output");
}

void add_answer_options(CommandLine line, AnswerOptions &options) {
  line.add_option(
      "PROFILE,-i", options.profiles,
      "a .assay file, a run's folder, or a folder of runs, of which the latest is taken "
      "(default: assay.out)");
  add_format_options(line, options);
  line.add_option("--top", options.top, "rows of each table, contexts or owners in JSON");
  line.add_option("--sort", options.sort, "one table, in this order");
  line.add_option(
      "--filter", options.filter,
      "only contexts with a module, function or type, or owners of lines with a name or "
      "type, that matches "
      "this regular expression");
}

void add_wrapper_option(CommandLine line, std::vector<std::string> &wrappers) {
  line.add_option(
          "--wrapper", wrappers,
          "functions that match this regular expression own no allocation, their callers do; "
          "may be repeated")
      .takes_one_word(); // what follows is a profile
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
    if (name.empty() || size.empty() || base::parse_bytes(size) == 0)
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

void write_output(const std::string &path,
                  const std::function<void(const report::Sink &)> &produce) {
  std::FILE *file = path == "-" ? stdout : std::fopen(path.c_str(), "we");
  if (!file)
    base::fail("{}: it cannot be written: {}; choose another place", path, std::strerror(errno));
  // Only now: a program that assay starts must not inherit an ignored signal.
  std::signal(SIGPIPE, SIG_IGN);
  struct NotWritten {}; // leaves `produce`, which may have gigabytes to come
  bool written = true;
  int error = 0;
  try {
    produce([file](std::string_view piece) {
      if (std::fwrite(piece.data(), 1, piece.size(), file) != piece.size())
        throw NotWritten();
    });
    written = std::fflush(file) == 0;
  } catch (const NotWritten &) {
    written = false;
  }
  error = errno;
  if (path != "-")
    written = std::fclose(file) == 0 && written;
  // NOLINTNEXTLINE(clang-analyzer-unix.Stream): it was closed, if it is not stdout
  if (!written && error != EPIPE)
    base::fail("{}: it cannot be written: {}; free some space or choose another place",
               path == "-" ? "standard output" : path, std::strerror(error));
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

std::string shell_word(const std::string &text) {
  constexpr const char *kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "%+,-./:=@_";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos)
    return text;
  std::string word = "'";
  for (char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

} // namespace cli
