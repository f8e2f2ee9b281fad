// `assay dump FILE`: the records of a profile as text, one line each, in file order. For people who
// write readers, and for bug reports; whatever can be read of a damaged file is shown.

#include "base/fail.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profile/container.h"
#include "profile/find_profiles.h"
#include "profile/record_text.h"

#include <memory>

namespace cli {
namespace {

struct DumpArguments {
  std::vector<std::string> files;
  std::string output = "-";
  bool stacks = false;
  bool format_table = false;
};

std::string dump(const std::string &path, bool with_stacks) {
  base::MappedFile file(path);
  profile::ContainerReader reader(file.bytes(), path);
  std::string text = profile::header_text(reader.header()) + "\n";
  profile::RecordView record;
  while (reader.next(record))
    text += profile::record_text(record, with_stacks) + "\n";
  if (reader.lost_bytes())
    text += "# " + reader.damage() + "\n";
  return text;
}

std::string dump_if_readable(const std::string &path, bool with_stacks) {
  try {
    return dump(path, with_stacks);
  } catch (const base::Failure &failure) {
    return std::string("# ") + failure.what() + "\n";
  }
}

} // namespace

Action define_dump(CommandLine line) {
  auto arguments = std::make_shared<DumpArguments>();
  line.add_option("FILE,-i", arguments->files, "profiles (default: those of the latest run)");
  line.add_flag("--stacks", arguments->stacks, "print the frames of call stacks, a line each");
  line.add_option("-o,--output", arguments->output, "write to this file; - is standard output");
  line.add_flag("--format-table", arguments->format_table, "the tables of docs/format.md")
      .is_hidden();
  line.set_footer("\nExamples:\n  assay dump\n  assay dump --stacks | less\n");
  return [arguments](const Words &) {
    if (arguments->format_table) {
      write_output(arguments->output, profile::format_tables());
      return 0;
    }
    auto files = profile::find_profiles(arguments->files);
    std::string text;
    for (const std::string &path : files) {
      if (files.size() > 1)
        text += "# " + path + "\n";
      text += files.size() > 1 ? dump_if_readable(path, arguments->stacks)
                               : dump(path, arguments->stacks);
    }
    write_output(arguments->output, text);
    return 0;
  };
}

} // namespace cli
