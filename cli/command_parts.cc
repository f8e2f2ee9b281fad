#include "cli/command_parts.h"

#include <memory>
#include <utility>

namespace cli {

Action define_parts(CLI::App &app, const std::vector<CommandPart> &parts) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App *, Action>> defined;
  for (const CommandPart &part : parts) {
    CLI::App *part_app = app.add_subcommand(part.name, part.help);
    defined.emplace_back(part_app, part.define(*part_app));
  }
  return [defined = std::move(defined)](const Words &after_dashes) {
    for (const auto &[part, action] : defined)
      if (part->parsed())
        return action(after_dashes);
    return 2;
  };
}

} // namespace cli
