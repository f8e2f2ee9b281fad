// `assay completions SHELL`: completions for bash, zsh and fish, and the manual page, printed from
// the command table and the options that each command declares, so that they cannot fall behind.
// The package installs what this prints (cmake/install.cmake).

#include "base/fail.h"
#include "base/shell_words.h"
#include "cli/command.h"
#include "cli/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <sstream>

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

// What an option may be given, as the help of its command lists it: keys of --sort, names of --options. Empty: it does
// not say.
std::vector<std::string> values_of(const CommandLine &command, const OptionFacts &option) {
  const bool is_sort = option.words == std::vector<std::string>{"sort"};
  const bool is_options = option.words == std::vector<std::string>{"options"};
  std::vector<std::string> values;
  if (const std::string before = "of this key: ";
      is_sort && option.description.find(before) != std::string::npos) {
    std::istringstream list(
        option.description.substr(option.description.find(before) + before.size()));
    for (std::string key; list >> key;)
      values.push_back(key.substr(0, key.find(',')));
    return values;
  }
  const std::string title = is_sort      ? "\nKeys of --sort:\n"
                            : is_options ? "\nRun-time options:\n"
                                         : "";
  const std::string footer = command.footer();
  const size_t at = title.empty() ? std::string::npos : footer.find(title);
  if (at == std::string::npos)
    return values;
  std::istringstream lines(footer.substr(at + title.size()));
  for (std::string line; std::getline(lines, line) && !line.empty();)
    if (line.starts_with("  ") && line[2] != ' ')
      values.push_back(line.substr(2, is_options ? line.find('=') - 1 : line.find(' ', 2) - 2));
  return values;
}

std::string joined(const std::vector<std::string> &words) {
  return fmt::format("{}", fmt::join(words, " "));
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

std::string option_words(const CommandLine &command) {
  std::vector<std::string> words;
  for (const OptionFacts &option : command.options())
    for (const std::string &word : spellings(option))
      words.push_back(word);
  return joined(words);
}

// A line for each option of which is known what it may be given.
std::string bash_values(const CommandLine &command, const std::string &name) {
  std::string cases;
  for (const OptionFacts &option : command.options())
    if (const auto values = values_of(command, option); !values.empty())
      cases += fmt::format("    '{} --{}') values='{}' ;;\n", name, option.words.front(),
                           joined(values));
  return cases;
}

std::string bash(const CommandLine &assay) {
  std::string names, cases, of_parts, values;
  for (const CommandLine &command : assay.parts()) {
    const std::string name = command.name(), parts = parts_of(command);
    names += (names.empty() ? "" : " ") + name;
    cases += fmt::format("    {}) words='{}'{} ;;\n", name, option_words(command),
                         parts.empty() ? "" : " parts='" + parts + "'");
    values += bash_values(command, name);
    for (const CommandLine &part : command.parts()) {
      const std::string whole = name + " " + part.name();
      of_parts += fmt::format("    '{}') words='{}' ;;\n", whole, option_words(part));
      values += bash_values(part, whole);
    }
  }
  return "# bash completions of assay, printed by `assay completions bash`\n"
         "_assay() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command=${COMP_WORDS[1]} words= parts= values= word\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '--help --version " +
         names +
         "' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  if [ \"$current\" = = ]; then # --sort=KEY is three words\n"
         "    current=\n"
         "  elif [ \"$previous\" = = ]; then\n"
         "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  fi\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "  for word in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
         "    case \" $parts \" in\n"
         "      *\" $word \"*) command=\"$command $word\" parts=; break ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command in\n" +
         of_parts +
         "  esac\n"
         "  case \"$command $previous\" in\n" +
         values +
         "  esac\n"
         "  case $values in\n"
         "    *=*) compopt -o nospace 2>/dev/null ;;\n"
         "  esac\n"
         "  if [ -n \"$values\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case $current in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -W \"$parts\" -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _assay assay\n";
}

// A call of _arguments for a command or a part of one, with `first` before its options.
std::string zsh_arguments(const CommandLine &command, const std::string &first) {
  std::string words = first.empty() ? "" : " \\\n        " + base::quoted_for_shell(first);
  for (const OptionFacts &option : command.options()) {
    const auto values = values_of(command, option);
    const std::string value = !option.takes_value ? ""
                              : values.empty()    ? ":value:_files"
                                                  : ":value:(" + joined(values) + ")";
    for (const std::string &word : spellings(option))
      words += " \\\n        " +
               base::quoted_for_shell(word + "[" + escaped(option.description, "[]:\\", "\\") +
                                      "]" + value);
  }
  return "_arguments" + words + " \\\n        '*:file:_files'";
}

std::string zsh(const CommandLine &assay) {
  std::string names, cases;
  for (const CommandLine &command : assay.parts()) {
    names +=
        "    " +
        base::quoted_for_shell(escaped(command.name(), ":", "\\") + ":" + command.description()) +
        "\n";
    const std::string parts = parts_of(command);
    std::string of_parts;
    for (const CommandLine &part : command.parts())
      of_parts += fmt::format("      {}:1) shift words; (( CURRENT-- )); {} ;;\n", part.name(),
                              zsh_arguments(part, ""));
    if (of_parts.empty())
      cases += fmt::format("    {}) {} ;;\n", command.name(), zsh_arguments(command, ""));
    else
      cases +=
          fmt::format("    {}) case $words[2]:$(( CURRENT > 2 )) in\n{}      *) {} ;;\n"
                      "      esac ;;\n",
                      command.name(), of_parts, zsh_arguments(command, "1:part:(" + parts + ")"));
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

std::string fish_options(const CommandLine &command, const std::string &condition) {
  std::string text;
  for (const OptionFacts &option : command.options()) {
    text += fmt::format("complete -c assay -n '{}'", condition);
    for (const std::string &letter : option.letters)
      text += " -s " + letter;
    for (const std::string &word : option.words)
      text += " -l " + word;
    const auto values = values_of(command, option);
    if (!values.empty())
      text += " -x -a " + base::quoted_for_shell(joined(values));
    else if (option.takes_value)
      text += " -r";
    text += " -d " + base::quoted_for_shell(option.description) + "\n";
  }
  return text;
}

std::string fish(const CommandLine &assay) {
  std::string text = "# fish completions of assay, printed by `assay completions fish`\n";
  for (const CommandLine &command : assay.parts()) {
    const std::string name = command.name(), parts = parts_of(command);
    const std::string is_command = "__fish_seen_subcommand_from " + name;
    text += fmt::format("complete -c assay -f -n __fish_use_subcommand -a {} -d {}\n", name,
                        base::quoted_for_shell(command.description()));
    for (const CommandLine &part : command.parts()) {
      text += fmt::format("complete -c assay -f -n '{}' -a {} -d {}\n", is_command, part.name(),
                          base::quoted_for_shell(part.description()));
      text += fish_options(part, is_command + "; and __fish_seen_subcommand_from " + part.name());
    }
    text += fish_options(
        command,
        parts.empty() ? is_command : is_command + "; and not __fish_seen_subcommand_from " + parts);
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
