// `assay merge -o OUT IN…`: adds profiles. No binary is needed; contexts meet by build id and
// offset.

#include "analyze/frame.h"
#include "base/fail.h"
#include "cli/command.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"

#include <cstdio>
#include <memory>

namespace cli {

Action define_merge(CommandLine line) {
  struct Arguments {
    std::vector<std::string> inputs;
    std::string output;
  };
  auto arguments = std::make_shared<Arguments>();
  line.add_option(
      "IN,-i", arguments->inputs,
      "profiles: .assay files, runs' folders, or folders of runs, of which the latest is "
      "taken");
  line.add_option("-o,--output", arguments->output, "the profile to write").required();
  line.set_footer(
      "\nExamples:\n  assay merge -o all.assay assay.out/*/*.assay\n  assay heap all.assay\n");
  return [arguments](const Words &) {
    if (arguments->inputs.empty())
      base::fail("merge: name the profiles or the folders of runs that are to be added");
    profile::Profile sum = profile::read(profile::find_profiles(arguments->inputs));
    for (const std::string &note : sum.notes)
      std::fprintf(stderr, "assay: %s\n", note.c_str());
    if (auto note = analyze::note_of_programs(sum))
      std::fprintf(stderr, "assay: merge: %s\n", note->c_str());
    profile::write(sum, arguments->output);
    return 0;
  };
}

} // namespace cli
