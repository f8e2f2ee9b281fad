// assay: the command table, and the one place that catches failures.
//
// Exit status: 0 done; 1 the answer is no; 2 wrong usage or a failure. `assay run` passes on the
// program's status instead.

#include "base/fail.h"
#include "cli/command.h"
#include "cli/likeness.h"
#include "cli/memory_limit.h"

#include "abi/version.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <ios>
#include <malloc.h>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

struct Command {
  cli::CommandLine line;
  cli::Action action;
};

// Fails for a word that names none of the command's parts.
[[noreturn]] void fail_for_unknown(const std::string &word, const cli::CommandLine &command) {
  std::string nearest, all;
  size_t least = word.size() / 2 + 1; // half of its letters wrong: no likeness
  for (const cli::CommandLine &part : command.parts()) {
    std::string name = part.name();
    all += (all.empty() ? "" : ", ") + name;
    if (size_t away = cli::distance(word, name); away < least) {
      least = away;
      nearest = name;
    }
  }
  if (nearest.empty())
    base::fail("{}: there is no such command; there are {}", word, all);
  base::fail("{}: there is no such command; did you mean `assay {}`? `assay --help` lists all",
             word, nearest);
}

// `assay values FILE`: which of the command's parts was meant?
void check_part(const cli::CommandLine &command, const std::string &given) {
  const std::vector<cli::CommandLine> parts = command.parts();
  if (!command.needs_part() || given.starts_with('-') ||
      std::any_of(parts.begin(), parts.end(),
                  [&](const cli::CommandLine &part) { return part.name() == given; }))
    return;
  std::string all;
  for (size_t i = 0; i < parts.size(); i++)
    all += (i == 0 ? "" : i + 1 == parts.size() ? " or " : ", ") + parts[i].name();
  base::fail("{}{}: behind {} comes what it shall do: {}; `assay {} --help` says what each is for",
             command.name(), given.empty() ? "" : " " + given, command.name(), all, command.name());
}

// `assay help trace record` means `assay trace record --help`: the words of that.
std::vector<std::string> words_for_help(cli::CommandLine command, int argc, char **argv) {
  std::vector<std::string> words;
  for (int index = 2; index < argc; index++) {
    const std::string word = argv[index];
    if (word == "--help" || word == "-h" || word == "help")
      continue;
    const std::vector<cli::CommandLine> parts = command.parts();
    const auto named = std::find_if(parts.begin(), parts.end(), [&](const cli::CommandLine &part) {
      return part.name() == word;
    });
    if (named == parts.end() && !words.empty())
      base::fail("help: there is no help on `{0} {1}`; write `assay help {0}`",
                 fmt::format("{}", fmt::join(words, " ")), word);
    if (named == parts.end())
      fail_for_unknown(word, command);
    command = *named;
    words.push_back(word);
  }
  words.emplace_back("--help");
  return words;
}

// The command that the words name, before they are parsed: `fields OLD apply` is apply.
cli::CommandLine meant_command(cli::CommandLine command, int argc, char **argv) {
  for (int index = 1; index < argc && std::string_view(argv[index]) != "--"; index++)
    for (const cli::CommandLine &part : command.parts())
      if (part.name() == argv[index]) {
        command = part;
        break;
      }
  return command;
}

int run_command(int argc, char **argv) {
  cli::AssayCommandLine assay(
      "Assay tells what a native program does with its memory, and what to change.",
      "assay " ASSAY_VERSION ", profile format " ASSAY_STRING(ASSAY_ABI_VERSION));
  cli::CommandLine line = assay.line();
  line.requires_part();
  line.set_footer(
      "\nExamples:\n  assay-cc -g -O2 -o app app.c && assay run -- ./app\n  assay heap\n");
  std::vector<Command> commands;
#define ASSAY_COMMAND(name, help)                                                                  \
  {                                                                                                \
    const cli::CommandLine command = line.add_part(#name, help);                                   \
    commands.push_back({command, cli::define_##name(command)});                                    \
  }
#include "cli/commands.def"
  std::vector<std::string> help;
  std::vector<char *> helping = {argv[0]};
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    help = words_for_help(line, argc, argv);
    for (std::string &word : help)
      helping.push_back(word.data());
    argc = static_cast<int>(helping.size());
    helping.push_back(nullptr);
    argv = helping.data();
  }
  std::string first = argc > 1 ? argv[1] : "-";
  if (!first.starts_with('-') &&
      std::none_of(commands.begin(), commands.end(),
                   [&](const Command &command) { return command.line.name() == first; }))
    fail_for_unknown(first, line);
  for (const Command &command : commands)
    if (command.line.name() == first)
      check_part(command.line, argc > 2 ? argv[2] : "");
  cli::Words after_dashes;
  // `assay run -- ./app`, `assay values record -- ./app`, `assay fields apply -- make`: what stands
  // behind -- is another program's.
  const cli::CommandLine meant = meant_command(line, argc, argv);
  const bool takes_program = meant.is_before_command() || meant.name() == "apply";
  for (int index = 1; takes_program && index < argc; index++)
    if (std::string_view(argv[index]) == "--") {
      after_dashes.assign(argv + index + 1, argv + argc);
      argc = index;
    }
  if (const std::optional<int> status = assay.parse(argc, argv))
    return *status;
  for (const Command &command : commands)
    if (command.line.is_given())
      return command.action(after_dashes);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  // Else the first file that is opened takes the place of a closed standard stream, and the answer
  // is written into it. Programs that are started have it closed still.
  for (int stream = 0; stream <= 2; stream++)
    if (fcntl(stream, F_GETFD) < 0)
      open("/dev/null", (stream == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  // A file size limit (ulimit -f) is an error of writing, not a death. Programs that are started
  // have the default again, which they would not have if the signal were ignored here.
  if (std::signal(SIGXFSZ, [](int) {}) == SIG_IGN)
    std::signal(SIGXFSZ, SIG_IGN);
  mallopt(M_MMAP_THRESHOLD, 1 << 20); // else glibc keeps the large blocks that were given back once
  try {
    return run_command(argc, argv);
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "assay: %s\n", failure.what());
  } catch (const std::bad_alloc &) {
    cli::say_memory_is_used_up();
  } catch (const std::filesystem::filesystem_error &error) {
    std::fprintf(stderr, "assay: %s: it cannot be used: %s\n", error.path1().c_str(),
                 error.code().message().c_str());
  } catch (const std::ios_base::failure &error) { // of a stream that cannot be written
    std::fprintf(stderr, "assay: the output cannot be written: %s\n",
                 error.code().message().c_str());
  } catch (const std::system_error &error) { // no thread, and the like
    std::fprintf(stderr, "assay: the system refuses: %s\n", error.code().message().c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "assay: internal error: %s; please report it\n", error.what());
  }
  return 2;
}
