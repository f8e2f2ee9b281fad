// Each function is one call of CLI11, under the name of what it means here. add_option() is a
// template whose body needs CLI11, so it is instantiated here for each type of variable; a new type
// needs a line. What CLI11 says of a wrong command line is put into one sentence that names the
// help of the command.
//
// The trap: get_subcommands() without a filter yields only those that were parsed. So parts()
// passes a filter that keeps all.

#include "cli/command_line.h"

#include "cli/output.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <sstream>

namespace cli {

static constexpr const char *kNotEmpty = "not empty";

DeclaredOption DeclaredOption::required() {
  option_->required();
  return *this;
}

DeclaredOption DeclaredOption::takes_one_word() {
  option_->allow_extra_args(false);
  return *this;
}

DeclaredOption DeclaredOption::shows_default() {
  option_->capture_default_str();
  return *this;
}

DeclaredOption DeclaredOption::is_hidden() {
  option_->group("");
  return *this;
}

DeclaredOption DeclaredOption::may_lack_word(const char *shown_as) {
  option_->type_name(shown_as)->expected(0, 1);
  return may_be_empty();
}

DeclaredOption DeclaredOption::may_be_empty() {
  option_->get_validator(kNotEmpty)->active(false);
  return *this;
}

DeclaredOption DeclaredOption::needs(const DeclaredOption &other) {
  option_->needs(other.option_);
  return *this;
}

// `--duration "$unset"` is a slip, and not the same as no --duration.
static CLI::Option *check_words(CLI::Option *option) {
  return option->check(CLI::Validator(
      [](const std::string &word) {
        return word.empty() ? "its value is empty; give one, or leave it out" : "";
      },
      "", kNotEmpty));
}

template <typename T>
DeclaredOption CommandLine::add_option(const std::string &names, T &variable,
                                       const std::string &help) {
  return DeclaredOption(check_words(app_->add_option(names, variable, help)));
}
template DeclaredOption CommandLine::add_option(const std::string &, std::string &,
                                                const std::string &);
template DeclaredOption CommandLine::add_option(const std::string &, std::vector<std::string> &,
                                                const std::string &);
template DeclaredOption CommandLine::add_option(const std::string &, std::optional<std::string> &,
                                                const std::string &);
template DeclaredOption CommandLine::add_option(const std::string &, unsigned &,
                                                const std::string &);
template DeclaredOption CommandLine::add_option(const std::string &, std::optional<unsigned> &,
                                                const std::string &);
template DeclaredOption CommandLine::add_option(const std::string &, int &, const std::string &);
template DeclaredOption CommandLine::add_option(const std::string &, uint64_t &,
                                                const std::string &);

DeclaredOption CommandLine::add_option(const std::string &names,
                                       std::function<void(const std::string &)> take,
                                       const std::string &help) {
  return DeclaredOption(
      check_words(app_->add_option_function<std::string>(names, std::move(take), help)));
}

DeclaredOption CommandLine::add_flag(const std::string &names, bool &variable,
                                     const std::string &help) {
  return DeclaredOption(app_->add_flag(names, variable, help));
}

DeclaredOption CommandLine::add_flag(const std::string &names, std::function<void()> act,
                                     const std::string &help) {
  return DeclaredOption(app_->add_flag_callback(names, std::move(act), help));
}

CommandLine CommandLine::add_part(const std::string &name, const std::string &help) {
  return CommandLine(app_->add_subcommand(name, help));
}

void CommandLine::requires_part() {
  app_->require_subcommand(1);
}

void CommandLine::set_footer(const std::string &text) {
  app_->footer(text);
}

void CommandLine::ends_with_command() {
  app_->prefix_command();
}

bool CommandLine::is_before_command() const {
  return app_->get_prefix_command();
}

bool CommandLine::is_given() const {
  return app_->parsed();
}

std::vector<std::string> CommandLine::rest() const {
  return app_->remaining();
}

std::string CommandLine::name() const {
  return app_->get_name();
}

std::string CommandLine::description() const {
  return app_->get_description();
}

std::string CommandLine::footer() const {
  return app_->get_footer();
}

std::vector<CommandLine> CommandLine::parts() const {
  std::vector<CommandLine> parts;
  for (CLI::App *part : app_->get_subcommands([](const CLI::App *) { return true; }))
    parts.emplace_back(part);
  return parts;
}

bool CommandLine::needs_part() const {
  return app_->get_require_subcommand_min() > 0;
}

std::vector<OptionFacts> CommandLine::options() const {
  std::vector<OptionFacts> all;
  for (const CLI::Option *option :
       app_->get_options([](const CLI::Option *each) { return each->nonpositional(); }))
    all.push_back({option->get_snames(), option->get_lnames(), option->get_description(),
                   option->get_items_expected_max() > 0});
  return all;
}

CommandLine CommandLine::parent() const {
  return CommandLine(app_->get_parent());
}

namespace {

// Says in the usage what CLI11 does not know of: the program's command.
struct UsageWithProgram : CLI::Formatter {
  std::string make_usage(const CLI::App *app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (app->get_prefix_command())
      usage.insert(usage.find_last_not_of('\n') + 1, " [-- PROGRAM [ARGUMENT...]]");
    return usage;
  }
};

} // namespace

AssayCommandLine::AssayCommandLine(const std::string &description, const std::string &version)
    : app_(std::make_unique<CLI::App>(description, "assay")) {
  app_->formatter(std::make_shared<UsageWithProgram>()); // of the parts, too
  app_->set_version_flag("--version", version);
}

AssayCommandLine::~AssayCommandLine() = default;

namespace {

const char *const kNoCommand = "a command is missing";

// What is wrong, in our words where CLI11's do not say it plainly. Its messages begin with the
// option, or end in what they are about.
std::string sentence_of(const CLI::ParseError &error) {
  const std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error))
    return text.find("At Most") != std::string::npos ? option + " is given more than once"
                                                     : option + " needs a value";
  if (dynamic_cast<const CLI::ExtrasError *>(&error)) {
    std::string words; // CLI11 has turned them around
    std::istringstream turned(text.substr(text.find(": ") + 2));
    for (std::string word; turned >> word; words = word + (words.empty() ? "" : " ") + words)
      if (word.starts_with('-'))
        return "there is no option " + word;
    return "too many arguments: " + words;
  }
  if (text == "A subcommand is required")
    return kNoCommand;
  const size_t value = text.find(" = ");
  const std::string cannot_convert = "Could not convert: ";
  if (text.starts_with(cannot_convert) && value != std::string::npos)
    return text.substr(cannot_convert.size(), value - cannot_convert.size()) + " " +
           text.substr(value + 3) + ": this is no number that it takes";
  return text;
}

} // namespace

std::optional<int> AssayCommandLine::parse(int argc, char **argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success &asked) { // --help, --version
    std::ostringstream text;
    const int status = app_->exit(asked, text, text);
    write_output("-", text.str());
    return status;
  } catch (const CLI::ParseError &error) {
    std::string command;
    bool runs_program = false;
    for (std::optional<CommandLine> given = line(); given;) {
      command += (command.empty() ? "" : " ") + given->name();
      runs_program = given->is_before_command();
      const std::vector<CommandLine> parts = given->parts();
      given.reset();
      for (const CommandLine &part : parts)
        if (part.is_given())
          given = part;
    }
    // CLI11 misses a command before it looks at what stands there instead.
    std::string sentence = sentence_of(error);
    if (sentence == kNoCommand)
      for (int i = 1; i < argc; i++)
        if (std::string_view(argv[i]).starts_with("-")) {
          sentence = std::string("there is no option ") + argv[i];
          break;
        }
    std::fprintf(stderr, "assay: %s; `%s --help` shows how it is used\n", sentence.c_str(),
                 command.c_str());
    return runs_program ? kOurFailure : kWrongUsage;
  }
  return std::nullopt;
}

} // namespace cli
