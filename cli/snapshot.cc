// `assay snapshot -p PID`: a running program writes its profile now, live objects included.
//
// What the program has measured stands in its profile, not on the control page: so the profile is
// read, which also shows that it is there.

#include "analyze/measured.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/live_page.h"
#include "cli/tool.h"
#include "profile/profile.h"

#include <cstdio>
#include <memory>

namespace cli {
namespace {

void say_what_is_there(const AssayControl &now, const std::string &path) {
  profile::Profile profile = profile::read({path});
  std::string text;
  for (const Tool *tool : tools())
    if (analyze::measured(profile, tool->bit))
      text += tool->progress(profile, now) + "; ";
  std::fputs(fmt::format("assay: {}profile: {}\n", text, path).c_str(), stderr);
}

} // namespace

Action define_snapshot(CommandLine line) {
  constexpr unsigned kPatienceSeconds = 10;
  auto pid = std::make_shared<int>(0);
  line.add_option("-p,--pid", *pid, "process id of a running program built with assay-cc")
      .required();
  line.set_footer(
      "\nExamples:\n  assay snapshot -p $(pidof app)\n  assay snapshot -p $(pidof app) && assay "
      "heap\n");
  return [pid](const Words &) {
    LivePage page(live_page_of(*pid));
    page.ask(ASSAY_REQUEST_SNAPSHOT, kPatienceSeconds);
    std::string profile = page.path();
    profile.replace(profile.rfind(".live"), std::string::npos, ".assay");
    say_what_is_there(page.read(), profile);
    return 0;
  };
}

} // namespace cli
