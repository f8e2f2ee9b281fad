#include "cli/command_parts.h"

#include <memory>
#include <utility>

namespace cli {

Action define_parts(CommandLine line, const std::vector<CommandPart> &parts) {
  line.requires_part();
  std::vector<std::pair<CommandLine, Action>> defined;
  for (const CommandPart &part : parts) {
    const CommandLine part_line = line.add_part(part.name, part.help);
    defined.emplace_back(part_line, part.define(part_line));
  }
  return [defined = std::move(defined)](const Words &after_dashes) {
    for (const auto &[part, action] : defined)
      if (part.is_given())
        return action(after_dashes);
    return 2;
  };
}

} // namespace cli
