// Options that every command with an answer shares: which profiles, in which form, to where.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/ownership.h"
#include "cli/command_line.h"
#include "report/document.h"
#include "report/table.h"

namespace cli {

struct AnswerOptions {
  std::vector<std::string> profiles;
  std::string format = "text"; // text, json, html
  std::string output = "-";    // "-": standard output
  unsigned top = 0;
  std::string sort;
  std::string filter;

  bool is_text() const { return format == "text"; } // else a document
  // The .assay files that the arguments mean.
  std::vector<std::string> files() const;
  // For text: the terminal's if it goes to one.
  report::Style style() const;
};

// Declares --format, --json and -o: of commands whose question is not about profiles. `options` must
// outlive the parse.
void add_format_options(CommandLine line, AnswerOptions &options);

// What of an answer the options choose, as their help says it.
struct AnswerRows {
  const char *top;      // "structs (10)": rows that --top counts
  const char *filtered; // "structs with a name or a file": what --filter asks
};

// Declares all of them.
void add_answer_options(CommandLine line, AnswerOptions &options, const AnswerRows &rows);

// All but --sort: of answers that have one order.
void add_unsorted_answer_options(CommandLine line, AnswerOptions &options, const AnswerRows &rows);

// Declares --wrapper, which may be repeated.
void add_wrapper_option(CommandLine line, std::vector<std::string> &wrappers);

// Says which of the patterns did nothing, once all answers are there.
void say_unmatched(const analyze::Wrappers &wrappers);

// Declares --cache, which may be repeated; what its words mean: names and bytes. Throws Failure for what is none.
void add_cache_option(CommandLine line, std::vector<std::string> &caches);
std::vector<std::pair<std::string, uint64_t>> caches_of(const std::vector<std::string> &words);

// Throws Failure for a format that does not exist, and for a page on a terminal.
void check_format(const AnswerOptions &options);

// For commands that do something long before: throws Failure if nothing can be written to this
// file, which is a folder, or lies in none that can be written.
void check_place(const std::string &path);
// The same of an answer, which does not take the place of what was measured, or of a program.
void check_output(const std::string &path);

// Writes the whole text to a file or, for "-", to standard output. Throws Failure; a reader that
// went away (a closed pipe) is not a failure.
void write_output(const std::string &path, const std::string &text);

// The same for text that comes in pieces, to the sink that `produce` is given. It should not fail
// by itself: what it has written by then stays. Once nothing can be written, it is left.
void write_output(const std::string &path,
                  const std::function<void(const report::Sink &)> &produce);

// Writes a document in the format that was asked for, which is not text: JSON or an HTML page. If
// there are `programs`, they are the elements of a last key of that name. Throws Failure.
void write_document(const AnswerOptions &options, const report::Document &document,
                    const std::vector<report::Document> &programs = {});
void write_document(const AnswerOptions &options, const report::Json &document);

} // namespace cli
