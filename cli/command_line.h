// What a command may be given. CLI11 does the work and is compiled in command_line.cc alone: it is
// all headers, and each file that included it took three seconds longer to build.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cli {

// Exit statuses where the command line is wrong. Commands that run a program pass on its status; for what is wrong with
// them they have those of env(1): 125, 126 and 127.
constexpr int kWrongUsage = 2;
constexpr int kOurFailure = 125;

// Words after the first `--` are a program's own and are not parsed here.
using Words = std::vector<std::string>;

// An option or argument that was declared, to say more of it.
class DeclaredOption {
public:
  explicit DeclaredOption(CLI::Option *option) : option_(option) {}
  DeclaredOption required();
  DeclaredOption takes_one_word(); // each time that it is given; what follows is another argument
  DeclaredOption shows_default();  // in the help: the value that its variable has now
  DeclaredOption is_hidden();      // from the help
  DeclaredOption may_lack_word(const char *shown_as);
  DeclaredOption may_be_empty(); // else an empty value is refused
  DeclaredOption
  needs(const DeclaredOption &other); // without which it is refused, as it would say nothing

private:
  CLI::Option *option_;
};

// What completions and the manual page say of an option.
struct OptionFacts {
  std::vector<std::string> letters, words; // without dashes
  std::string description;
  bool takes_value;
};

// Of `assay`, of a command, or of a part of one: `assay values record`. A handle, to be copied.
// Variables that are named must outlive the parse.
class CommandLine {
public:
  explicit CommandLine(CLI::App *app) : app_(app) {}

  // `names`: "-o,--output", or "PROFILE" for an argument by its place. T: std::string, unsigned,
  // std::optional of these, std::vector<std::string> (may be repeated), int, uint64_t.
  template <typename T>
  DeclaredOption add_option(const std::string &names, T &variable, const std::string &help);
  DeclaredOption add_option(const std::string &names, std::function<void(const std::string &)> take,
                            const std::string &help);
  DeclaredOption add_flag(const std::string &names, bool &variable, const std::string &help);
  DeclaredOption add_flag(const std::string &names, std::function<void()> act,
                          const std::string &help);
  CommandLine add_part(const std::string &name, const std::string &help);
  void requires_part();
  // Examples and what else stands below the options in the help.
  void set_footer(const std::string &text);
  // The first word that is no option begins a program's command.
  void ends_with_command();
  bool is_before_command() const; // was that declared?

  // After the parse.
  bool is_given() const;                 // was the command, or the part, named?
  std::vector<std::string> rest() const; // the program's command

  std::string name() const;
  std::string description() const;
  std::string footer() const;
  std::vector<CommandLine> parts() const;
  bool needs_part() const;
  std::vector<OptionFacts> options() const;
  CommandLine parent() const;

private:
  CLI::App *app_;
};

// The command line of `assay` itself.
class AssayCommandLine {
public:
  AssayCommandLine(const std::string &description, const std::string &version);
  ~AssayCommandLine();
  AssayCommandLine(const AssayCommandLine &) = delete;
  AssayCommandLine &operator=(const AssayCommandLine &) = delete;

  CommandLine line() const { return CommandLine(app_.get()); }
  // A status to exit with, if help was asked for and shown or what is wrong was said; else a
  // command is to be acted upon.
  std::optional<int> parse(int argc, char **argv);

private:
  std::unique_ptr<CLI::App> app_;
};

} // namespace cli
