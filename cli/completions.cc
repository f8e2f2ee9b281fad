// `assay completions SHELL`: completions for bash, zsh and fish, and the manual page, printed from
// the command table and the options that each command declares, so that they cannot fall behind.
// The package installs what this prints (cmake/install.cmake).

#include "base/fail.h"
#include "base/shell_words.h"
#include "cli/command.h"
#include "cli/output.h"

#include <fmt/format.h>

#include <memory>
#include <set>

namespace cli {
namespace {

std::vector<std::string> spellings(const OptionFacts &option) {
  std::vector<std::string> all;
  for (const std::string &name : option.letters)
    all.push_back("-" + name);
  for (const std::string &name : option.words)
    all.push_back("--" + name);
  return all;
}

// Those of the parts of a command too, each once: `assay values record -F`.
std::vector<OptionFacts> options_with_parts(const CommandLine &command) {
  std::vector<OptionFacts> all = command.options();
  std::set<std::string> names;
  for (const OptionFacts &option : all)
    names.insert(spellings(option).back());
  for (const CommandLine &part : command.parts())
    for (const OptionFacts &option : part.options())
      if (names.insert(spellings(option).back()).second)
        all.push_back(option);
  return all;
}

// "record report": the parts of a command.
std::string parts_of(const CommandLine &command) {
  std::string parts;
  for (const CommandLine &part : command.parts())
    parts += (parts.empty() ? "" : " ") + part.name();
  return parts;
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

std::string bash(const CommandLine &assay) {
  std::string names, cases;
  for (const CommandLine &command : assay.parts()) {
    names += (names.empty() ? "" : " ") + command.name();
    std::string words;
    for (const OptionFacts &option : options_with_parts(command))
      for (const std::string &word : spellings(option))
        words += (words.empty() ? "" : " ") + word;
    const std::string parts = parts_of(command);
    cases += fmt::format("    {}) words='{}'{} ;;\n", command.name(), words,
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

std::string zsh(const CommandLine &assay) {
  std::string names, cases;
  for (const CommandLine &command : assay.parts()) {
    names +=
        "    " +
        base::quoted_for_shell(escaped(command.name(), ":", "\\") + ":" + command.description()) +
        "\n";
    std::string words;
    if (const std::string parts = parts_of(command); !parts.empty())
      words += " \\\n        " + base::quoted_for_shell("1:part:(" + parts + ")");
    for (const OptionFacts &option : options_with_parts(command))
      for (const std::string &word : spellings(option))
        words += " \\\n        " +
                 base::quoted_for_shell(word + "[" + escaped(option.description, "[]:\\", "\\") +
                                        "]" + (option.takes_value ? ":value:_files" : ""));
    cases +=
        fmt::format("    {}) _arguments{} \\\n        '*:file:_files' ;;\n", command.name(), words);
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

std::string fish(const CommandLine &assay) {
  std::string text = "# fish completions of assay, printed by `assay completions fish`\n";
  for (const CommandLine &command : assay.parts()) {
    std::string name = command.name();
    text += fmt::format("complete -c assay -f -n __fish_use_subcommand -a {} -d {}\n", name,
                        base::quoted_for_shell(command.description()));
    for (const CommandLine &part : command.parts())
      text += fmt::format("complete -c assay -f -n '__fish_seen_subcommand_from {}' -a {} -d {}\n",
                          name, part.name(), base::quoted_for_shell(part.description()));
    for (const OptionFacts &option : options_with_parts(command)) {
      text += fmt::format("complete -c assay -n '__fish_seen_subcommand_from {}'", name);
      for (const std::string &letter : option.letters)
        text += " -s " + letter;
      for (const std::string &word : option.words)
        text += " -l " + word;
      text += fmt::format("{} -d {}\n", option.takes_value ? " -r" : "",
                          base::quoted_for_shell(option.description));
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

std::string manual_section(const CommandLine &command, const std::string &name) {
  std::string text = ".SH assay " + troff(name) + "\n" + troff(command.description()) + "\n";
  for (const OptionFacts &option : command.options()) {
    std::string words;
    for (const std::string &word : spellings(option))
      words += (words.empty() ? "" : ", ") + word;
    text += ".TP\n\\fB" + troff(words) + "\\fR" + (option.takes_value ? " \\fIVALUE\\fR" : "") +
            "\n" + troff(option.description) + "\n";
  }
  return text + ".PP\n.nf\n" + troff(command.footer()) + ".fi\n";
}

std::string manual(const CommandLine &assay) {
  std::string text = ".TH ASSAY 1\n.SH NAME\nassay \\- " + troff(assay.description()) +
                     "\n.SH SYNOPSIS\n.B assay\n.I COMMAND\n[\\fIOPTION\\fR...] "
                     "[\\fIARGUMENT\\fR...]\n";
  for (const CommandLine &command : assay.parts()) {
    text += manual_section(command, command.name());
    for (const CommandLine &part : command.parts())
      text += manual_section(part, command.name() + " " + part.name());
  }
  return text + ".SH EXIT STATUS\n0: done. 1: the answer is no. 2: wrong usage or a failure. assay "
                "run passes on the status of the program.\n";
}

} // namespace

Action define_completions(CommandLine line) {
  struct Arguments {
    std::string shell, output = "-";
  };
  auto arguments = std::make_shared<Arguments>();
  line.add_option("SHELL", arguments->shell, "bash, zsh, fish; or man, for the manual page")
      .required();
  line.add_option("-o,--output", arguments->output, "write to this file; - is standard output");
  line.set_footer("\nExamples:\n  assay completions bash -o "
                  "~/.local/share/bash-completion/completions/assay\n  assay completions fish -o "
                  "~/.config/fish/completions/assay.fish\n");
  return [arguments, line](const Words &) {
    const CommandLine assay = line.parent();
    std::string (*printer)(const CommandLine &) = arguments->shell == "bash"   ? bash
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
