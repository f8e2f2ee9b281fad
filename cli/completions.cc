// `assay completions SHELL`: completions for bash, zsh and fish, and the manual page, printed from
// the command table and the options that each command declares, so that they cannot fall behind.
// The package installs what this prints (cmake/install.cmake).

#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"

#include <fmt/format.h>

#include <memory>
#include <set>

namespace cli {
namespace {

using Commands = std::vector<const CLI::App *>;
using Options = std::vector<const CLI::Option *>;

Commands commands_of(const CLI::App &assay) {
  return assay.get_subcommands([](const CLI::App *) { return true; });
}

Options options_of(const CLI::App &command) {
  return command.get_options([](const CLI::Option *option) { return option->nonpositional(); });
}

// Those of the parts of a command too, each spelling once: `assay values record -F`.
Options options_with_parts(const CLI::App &command) {
  Options all = options_of(command);
  std::set<std::string> names;
  for (const CLI::Option *option : all)
    names.insert(option->get_name());
  for (const CLI::App *part : commands_of(command))
    for (const CLI::Option *option : options_of(*part))
      if (names.insert(option->get_name()).second)
        all.push_back(option);
  return all;
}

// "record report": the parts of a command.
std::string parts_of(const CLI::App &command) {
  std::string parts;
  for (const CLI::App *part : commands_of(command))
    parts += (parts.empty() ? "" : " ") + part->get_name();
  return parts;
}

bool takes_value(const CLI::Option &option) {
  return option.get_items_expected_max() > 0;
}

std::vector<std::string> spellings(const CLI::Option &option) {
  std::vector<std::string> all;
  for (const std::string &name : option.get_snames())
    all.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    all.push_back("--" + name);
  return all;
}

std::string escaped(const std::string &text, std::string_view characters, const char *with) {
  std::string result;
  for (char c : text) {
    if (characters.find(c) != std::string_view::npos)
      result += with;
    result += c;
  }
  return result;
}

// For a word in single quotes.
std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash(const CLI::App &assay) {
  std::string names, cases;
  for (const CLI::App *command : commands_of(assay)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string words;
    for (const CLI::Option *option : options_with_parts(*command))
      for (const std::string &word : spellings(*option))
        words += (words.empty() ? "" : " ") + word;
    const std::string parts = parts_of(*command);
    cases += fmt::format("    {}) words='{}'{} ;;\n", command->get_name(), words,
                         parts.empty() ? "" : " parts='" + parts + "'");
  }
  return "# bash completions of assay, printed by `assay completions bash`\n"
         "_assay() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words= parts=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '--help --version " +
         names +
         "' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  case $current in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -W \"$parts\" -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _assay assay\n";
}

std::string zsh(const CLI::App &assay) {
  std::string names, cases;
  for (const CLI::App *command : commands_of(assay)) {
    names += "    " +
             quoted(escaped(command->get_name(), ":", "\\") + ":" + command->get_description()) +
             "\n";
    std::string words;
    if (const std::string parts = parts_of(*command); !parts.empty())
      words += " \\\n        " + quoted("1:part:(" + parts + ")");
    for (const CLI::Option *option : options_with_parts(*command))
      for (const std::string &word : spellings(*option))
        words += " \\\n        " +
                 quoted(word + "[" + escaped(option->get_description(), "[]:\\", "\\") + "]" +
                        (takes_value(*option) ? ":value:_files" : ""));
    cases += fmt::format("    {}) _arguments{} \\\n        '*:file:_files' ;;\n",
                         command->get_name(), words);
  }
  return "#compdef assay\n"
         "# zsh completions of assay, printed by `assay completions zsh`\n"
         "_assay() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_assay \"$@\"\n";
}

std::string fish(const CLI::App &assay) {
  std::string text = "# fish completions of assay, printed by `assay completions fish`\n";
  for (const CLI::App *command : commands_of(assay)) {
    std::string name = command->get_name();
    text += fmt::format("complete -c assay -f -n __fish_use_subcommand -a {} -d {}\n", name,
                        quoted(command->get_description()));
    for (const CLI::App *part : commands_of(*command))
      text += fmt::format("complete -c assay -f -n '__fish_seen_subcommand_from {}' -a {} -d {}\n",
                          name, part->get_name(), quoted(part->get_description()));
    for (const CLI::Option *option : options_with_parts(*command)) {
      text += fmt::format("complete -c assay -n '__fish_seen_subcommand_from {}'", name);
      for (const std::string &letter : option->get_snames())
        text += " -s " + letter;
      for (const std::string &word : option->get_lnames())
        text += " -l " + word;
      text += fmt::format("{} -d {}\n", takes_value(*option) ? " -r" : "",
                          quoted(option->get_description()));
    }
  }
  return text;
}

// Text for troff: no line may begin with a dot or an apostrophe.
std::string troff(const std::string &text) {
  std::string result = escaped(text, "\\", "\\");
  result = escaped(result, "-", "\\");
  for (size_t at = 0; at < result.size(); at++)
    if ((at == 0 || result[at - 1] == '\n') && (result[at] == '.' || result[at] == '\''))
      result.insert(at, "\\&");
  return result;
}

std::string manual_section(const CLI::App &command, const std::string &name) {
  std::string text = ".SH assay " + troff(name) + "\n" + troff(command.get_description()) + "\n";
  for (const CLI::Option *option : options_of(command)) {
    std::string words;
    for (const std::string &word : spellings(*option))
      words += (words.empty() ? "" : ", ") + word;
    text += ".TP\n\\fB" + troff(words) + "\\fR" + (takes_value(*option) ? " \\fIVALUE\\fR" : "") +
            "\n" + troff(option->get_description()) + "\n";
  }
  return text + ".PP\n.nf\n" + troff(command.get_footer()) + ".fi\n";
}

std::string manual(const CLI::App &assay) {
  std::string text = ".TH ASSAY 1\n.SH NAME\nassay \\- " + troff(assay.get_description()) +
                     "\n.SH SYNOPSIS\n.B assay\n.I COMMAND\n[\\fIOPTION\\fR...] "
                     "[\\fIARGUMENT\\fR...]\n";
  for (const CLI::App *command : commands_of(assay)) {
    text += manual_section(*command, command->get_name());
    for (const CLI::App *part : commands_of(*command))
      text += manual_section(*part, command->get_name() + " " + part->get_name());
  }
  return text + ".SH EXIT STATUS\n0: done. 1: the answer is no. 2: wrong usage or a failure. assay "
                "run passes on the status of the program.\n";
}

} // namespace

Action define_completions(CLI::App &app) {
  struct Arguments {
    std::string shell, output = "-";
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("SHELL", arguments->shell, "bash, zsh, fish; or man, for the manual page")
      ->required();
  app.add_option("-o,--output", arguments->output, "write to this file; - is standard output");
  app.footer("\nExamples:\n  assay completions bash -o "
             "~/.local/share/bash-completion/completions/assay\n  assay completions fish -o "
             "~/.config/fish/completions/assay.fish\n");
  return [arguments, &app](const Words &) {
    const CLI::App &assay = *app.get_parent();
    std::string (*printer)(const CLI::App &) = arguments->shell == "bash"   ? bash
                                               : arguments->shell == "zsh"  ? zsh
                                               : arguments->shell == "fish" ? fish
                                               : arguments->shell == "man"  ? manual
                                                                            : nullptr;
    if (!printer)
      base::fail("completions {}: no such shell here; there is bash, zsh, fish, and man",
                 arguments->shell);
    write_output(arguments->output, printer(assay));
    return 0;
  };
}

} // namespace cli
