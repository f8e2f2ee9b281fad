// `assay snapshot -p PID`: a running program writes its profile now, live objects included.

#include "base/fail.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/live_page.h"

#include <cstdio>
#include <memory>

namespace cli {

Action define_snapshot(CLI::App &app) {
  constexpr unsigned kPatienceSeconds = 10;
  auto pid = std::make_shared<int>(0);
  app.add_option("-p,--pid", *pid, "process id of a running program built with assay-cc")
      ->required();
  app.footer(
      "\nExamples:\n  assay snapshot -p $(pidof app)\n  assay snapshot -p $(pidof app) && assay "
      "heap\n");
  return [pid](const Words &) {
    LivePage page(live_page_of(*pid));
    page.ask(ASSAY_REQUEST_SNAPSHOT, kPatienceSeconds);
    AssayControl now = page.read();
    std::string profile = page.path();
    profile.replace(profile.rfind(".live"), std::string::npos, ".assay");
    std::fputs(fmt::format("assay: {} allocations so far, {} live, peak {}; profile: {}\n",
                           base::format_count(double(now.allocations)),
                           base::format_bytes(double(now.live_bytes)),
                           base::format_bytes(double(now.peak_bytes)), profile)
                   .c_str(),
               stderr);
    return 0;
  };
}

} // namespace cli
