// `assay run -- ./app args…`: runs an instrumented program, its input and output untouched, and
// says in a few lines on standard error what was measured and where it is.
//
// The runtime decides where its profile goes; a run's folder ends in the pid of the program. A
// program that only starts the instrumented one (a script, make) has another pid: then every folder
// that appeared meanwhile counts.

#include "abi/given_options.h"
#include "analyze/measured.h"
#include "base/fail.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/keep_files.h"
#include "cli/memory_limit.h"
#include "cli/output.h"
#include "cli/program_command.h"
#include "cli/tool.h"
#include "image/elf.h"
#include "image/executable.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <set>
#include <unistd.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  std::string output;
  std::string options;
  bool no_aslr = false;
  bool preload = false;
  std::vector<std::string> command;
};

// As a value of ASSAY_OPTIONS.
std::string quoted(const std::string &folder) {
  if (folder.find(':') == std::string::npos && !strchr("'\"", folder.front()))
    return folder;
  for (const char quote : {'\'', '"'})
    if (folder.find(quote) == std::string::npos)
      return quote + folder + quote;
  base::fail("-o {}: the name of a folder cannot hold a colon and both quotes; choose another",
             folder);
}

struct GivenOption {
  std::string_view name, value; // the value without its quotes
  bool is_whole = true;         // nothing stands beside the quotes, and both are there
};

std::vector<GivenOption> options_in(const std::string &given) {
  std::vector<GivenOption> options;
  for (const char *at = given.c_str(); *at;) {
    const AssayGivenOption next = assay_next_option(at);
    options.push_back(
        {{next.name, next.name_end}, {next.value, next.value_end}, next.is_quoted_whole != 0});
    at = *next.behind ? next.behind + 1 : next.behind;
  }
  return options;
}

bool is_number(std::string_view value, uint64_t most) {
  uint64_t number = 0;
  return assay_read_number(value.begin(), value.end(), &number) && number <= most;
}

// What the value of an option must be, if it is another.
const char *wanted_instead(std::string_view type, const GivenOption &option) {
  if (!option.is_whole)
    return "it must stand in quotes as a whole, or without any";
  if (type == "flag" && !is_number(option.value, 1))
    return "it is 0 or 1";
  if (type == "number" && !is_number(option.value, UINT64_MAX))
    return "it is a number, such as 64 or 16k";
  return nullptr;
}

// The runtime only says what it does not take, as it must not hinder a program.
void check_options(const std::string &given) {
  for (const GivenOption &option : options_in(given)) {
    bool is_known = option.name.empty();
    const char *wanted = nullptr;
#define ASSAY_OPTION(type, known, fallback, help)                                                  \
  if (option.name == #known) {                                                                     \
    is_known = true;                                                                               \
    wanted = wanted_instead(#type, option);                                                        \
  }
#include "abi/options.def"
    if (!is_known)
      base::fail("--options: there is no option `{}`; `assay run --help` lists them", option.name);
    if (wanted)
      base::fail("--options: `{}` is no value of {}: {}; `assay run --help` lists them all",
                 option.value, option.name, wanted);
  }
}

std::string runtime_options(const RunArguments &arguments) {
  check_options(arguments.options);
  const char *inherited = std::getenv("ASSAY_OPTIONS");
  std::string options = inherited ? inherited : "";
  auto append = [&options](const std::string &more) {
    if (!more.empty())
      options += (options.empty() ? "" : ":") + more;
  };
  append(arguments.options);
  if (!arguments.output.empty()) {
    std::error_code ignored;
    if (const auto there = std::filesystem::status(arguments.output, ignored);
        std::filesystem::exists(there) && !std::filesystem::is_directory(there))
      base::fail("-o {}: this is a file; name a folder, in which each process writes its profile",
                 arguments.output);
    append("dir=" + quoted(arguments.output));
  }
  return options;
}

// The last value of an option.
std::optional<std::string> value_of(const char *name, const std::string &options) {
  std::optional<std::string> value;
  for (const GivenOption &option : options_in(options))
    if (option.name == name)
      value = option.value;
  return value;
}

// Patterns (%p and such) are known only to the program; the folder above the first pattern holds whatever they become.
std::string above_patterns(const std::string &folder) {
  size_t pattern = folder.find('%');
  if (pattern == std::string::npos)
    return folder;
  size_t slash = folder.rfind('/', pattern);
  return slash == std::string::npos ? "." : folder.substr(0, slash);
}

std::string profile_folder(const std::string &options) {
  return above_patterns(value_of("dir", options).value_or(profile::kDefaultFolder));
}

// The DIR of -fheapprof=DIR, with which the program was built; empty if there is none, or it is no such program.
std::string folder_in_program(const std::string &program) {
  try {
    const std::string path = executable_of(program);
    for (const image::DataSymbol &symbol : image::data(path).symbols)
      if (symbol.linkage_name == "__assay_default_dir") {
        const image::Executable executable(path);
        const auto bytes = executable.bytes(symbol.address, symbol.size);
        const std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
        return text.substr(0, text.find('\0'));
      }
  } catch (const base::Failure &) { // a script
  }
  return "";
}

std::set<std::string> folders_in(const std::string &folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator each(folder, ignored), end; !ignored && each != end;
       each.increment(ignored)) {
    std::error_code unreadable;
    if (each->is_directory(unreadable))
      names.insert(each->path().string());
  }
  return names;
}

// What was in a folder before a run whose folder ends in the process's id. Ids come again: only its latest is not.
std::set<std::string> folders_of_others(const std::string &folder, pid_t pid) {
  std::set<std::string> all = folders_in(folder);
  const std::string suffix = "." + std::to_string(pid);
  const auto own = std::find_if(all.rbegin(), all.rend(),
                                [&](const std::string &name) { return name.ends_with(suffix); });
  if (own != all.rend())
    all.erase(*own);
  return all;
}

// Profiles of the runs that appeared; those of the process itself come first.
std::vector<std::string> new_profiles(const std::string &folder,
                                      const std::set<std::string> &before, pid_t pid,
                                      std::string &run_folder) {
  std::vector<std::string> own, others;
  std::string suffix = "." + std::to_string(pid);
  for (const std::string &name : folders_in(folder)) {
    if (before.count(name))
      continue;
    auto found = profile::profiles_in_run(name);
    auto &list = name.ends_with(suffix) ? own : others;
    list.insert(list.end(), found.begin(), found.end());
    if (!found.empty() && (name.ends_with(suffix) || own.empty()))
      run_folder = name;
  }
  return own.empty() ? others : own;
}

void summarize(const std::vector<std::string> &files, const std::string &run_folder,
               const std::string &folder) {
  profile::Profile profile = profile::read(files);
  std::set<fs::path> folders; // of profiles: a pattern for -o may put one more in between
  for (const std::string &file : files)
    folders.insert(fs::path(file).parent_path());
  for (const fs::path &each : folders)
    keep_files(profile, each);
  std::string text;
  std::vector<const char *> answers; // commands that have one
  for (const Tool *tool : tools())
    if (analyze::measured(profile, tool->bit)) {
      text += "assay: " + tool->summary(profile) + "\n";
      answers.push_back(tool->name);
    }
  for (const std::string &note : profile.notes)
    text += "assay: " + note + "\n";
  text +=
      fmt::format("assay: profile of {} in {}\n",
                  base::with_noun(profile.processes.size(), "process", "processes"), run_folder);
  if (answers.size() > 1)
    answers.insert(answers.begin(), "report"); // what they say together
  for (const char *answer : answers)
    text += folder == profile::kDefaultFolder
                ? fmt::format("assay: next: assay {}\n", answer)
                : fmt::format("assay: next: assay {} {}\n", answer, base::shell_word(run_folder));
  std::fputs(text.c_str(), stderr);
}

std::string why_no_profile(const RunArguments &arguments, const std::string &folder) {
  if (const int error = why_not_writable(folder))
    return fmt::format(": it cannot be written to ({}); name another folder with -o",
                       std::strerror(error));
  if (const auto limit = memory_limit())
    return fmt::format("; the profiler needs more memory than `{}` allows: raise it", limit->name);
  if (arguments.preload)
    return "; --preload does not reach programs that are linked statically or run with another "
           "user's rights, nor a malloc of their own: build it with assay-cc";
  return "; if nothing above says why, was it built with assay-cc? If not: assay run --preload";
}

std::string no_profile(const RunArguments &arguments, const std::string &folder) {
  return fmt::format("assay: {} wrote no profile into {}{}\n", arguments.command.front(), folder,
                     why_no_profile(arguments, folder));
}

// The program ran; whatever goes wrong now is only said, its status counts.
void report_run(std::string folder, const std::set<std::string> &before, pid_t pid,
                const RunArguments &arguments, const std::string &options) {
  try {
    std::string run_folder;
    auto files = new_profiles(folder, before, pid, run_folder);
    const std::string built_in = files.empty() && !value_of("dir", options)
                                     ? folder_in_program(arguments.command.front())
                                     : "";
    if (!built_in.empty()) {
      folder = above_patterns(built_in);
      files = new_profiles(folder, folders_of_others(folder, pid), pid, run_folder);
    }
    if (files.empty())
      std::fputs(no_profile(arguments, folder).c_str(), stderr);
    else
      summarize(files, run_folder, folder);
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "assay: %s\n", failure.what());
  }
}

// What the program starts writes into the folder of this run; within another `assay run`, into its folder.
std::string with_run_name(std::string options, const std::string &program) {
  if ((":" + options).find(":run=") != std::string::npos)
    return options;
  std::time_t now = std::time(nullptr);
  std::string name = fs::path(program).filename().string();
  std::replace(name.begin(), name.end(), ':', '_');
  options += options.empty() ? "" : ":";
  return options + fmt::format("run={}-{}.{{pid}}", profile::run_time_text(now), name);
}

int run(const RunArguments &arguments) {
  std::string options = runtime_options(arguments);
  std::string folder = profile_folder(options);
  auto before = folders_in(folder);
  ChildSettings settings;
  settings.no_aslr = arguments.no_aslr;
  if (arguments.preload)
    settings.environment.push_back(preloading("libassay_preload.so"));
  settings.environment.emplace_back("ASSAY_OPTIONS",
                                    with_run_name(options, arguments.command.front()));
  ChildStatus status = run_child(arguments.command, settings);
  const std::string &program = arguments.command.front();
  if (status.aslr_kept)
    base::fail(
        "--no-aslr: this machine does not allow it (often a container's seccomp filter); leave "
        "it out");
  if (status.start_error)
    return say_not_started(program, status);
  report_run(folder, before, status.pid, arguments, options);
  end_like(status.wait_status);
}

} // namespace

Action define_run(CommandLine line) {
  auto arguments = std::make_shared<RunArguments>();
  line.add_option("-o,--output", arguments->output,
                  "folder in which the run's folder is made (default: assay.out)");
  line.add_option("--options", arguments->options,
                  "run-time options, name=value:name=value; appended to ASSAY_OPTIONS");
  line.add_flag("--no-aslr", arguments->no_aslr,
                "load the program at the same addresses each time");
  line.add_flag(
      "--preload", arguments->preload,
      "for a program that was not built with assay-cc: record its allocations, without accesses");
  std::string list = "\nRun-time options:\n";
#define ASSAY_OPTION(type, name, fallback, help)                                                   \
  list += fmt::format("  {:<18} {} (default {})\n", #name "=" #type, help, fallback);
#include "abi/options.def"
  line.set_footer(
      list + "\nExamples:\n  assay run -- ./app --its-own-option\n  assay run -o /tmp/profiles "
             "--options depth=32 -- ./app\n");
  return act_on_program(line, "run", arguments->command, [arguments] {
    if (arguments->command.empty())
      base::fail("run: no program is named; write `assay run -- ./app`");
    return run(*arguments);
  });
}

} // namespace cli
