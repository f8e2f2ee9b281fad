// An order of members is in the definition, in initializers without names, and in nothing else that
// the source shows; so it is clang-reorder-fields that edits, with the flags that the sources are
// compiled with. It works on a copy of the folder. What is changed there is always shown; it goes
// back to the folder only with --yes.
//
// --check builds the folder as it was and as it would be, runs the program in both in turn, and
// compares what the advice foretold with what the windows of the second one show.
//
// Refused: to edit in place and to undo that by hand, as an interrupted check would leave half of
// it behind; to ask on the terminal, which scripts cannot answer.

#include "cli/fields_apply.h"

#include "analyze/fields.h"
#include "base/fail.h"
#include "base/output_file.h"
#include "base/units.h"
#include "cli/member_order.h"
#include "cli/output.h"
#include "cli/source_folder.h"
#include "cli/temporary_folder.h"
#include "profile/find_profiles.h"
#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

struct ApplyArguments {
  std::string record;
  std::vector<std::string> files;
  std::string profile, folder = ".", flags, build, to;
  unsigned rounds = 5;
  bool yes = false, check = false;
};

std::vector<std::string> words_of(const std::string &text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

const analyze::StructRow &find_struct(const analyze::FieldsResult &result,
                                      const std::string &name) {
  for (const analyze::StructRow &row : result.structs)
    if (row.record.name == name)
      return row;
  std::string some;
  for (size_t i = 0; i < std::min<size_t>(5, result.structs.size()); i++)
    some += (i ? ", " : "") + result.structs[i].record.name;
  base::fail("{}: no struct of that name was accessed; {}", name,
             some.empty() ? "nor was any other: nothing of them was counted" : "there is " + some);
}

analyze::FieldsResult result_of(const std::vector<std::string> &named) {
  const std::vector<std::string> files = profile::find_profiles(named);
  profile::Profile profile = profile::read(files);
  if (!analyze::has_fields(profile))
    base::fail("{}: {}; name another profile with --profile", files.front(),
               analyze::why_no_fields(profile));
  return analyze::fields(profile, {"", "", 0});
}

// What one run of the program in a folder showed.
struct Measured {
  double lines = 0;
  std::vector<double> cpu_s;
  std::string printed;    // by the first run
  bool is_printed = true; // by each
  int status = 0;         // of the first run
  double median() {
    std::ranges::sort(cpu_s);
    return cpu_s[cpu_s.size() / 2];
  }
};

double children_cpu_s() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  auto seconds = [](const timeval &t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Apply {
public:
  Apply(const ApplyArguments &arguments, const std::vector<std::string> &profiles,
        const Words &command)
      : arguments_(arguments), profiles_(profiles), command_(command) {}

  int run() {
    if (arguments_.check && command_.empty())
      base::fail("--check runs the program that is named after --, such as: assay fields apply S "
                 "a.c --check --build make -- ./app");
    check_target();
    const analyze::FieldsResult result =
        result_of(arguments_.profile.empty() ? profiles_ : std::vector{arguments_.profile});
    const analyze::StructRow &row = find_struct(result, arguments_.record);
    check_files();
    const auto [order, why_none] = row.declarations();
    if (order.empty())
      base::fail("{}: {} cannot give its members another order: {}", row.record.name, kFieldEditor,
                 why_none);
    if (std::ranges::is_sorted(row.advice.layout.order))
      base::fail("{}: its members are in the order that is advised", row.record.name);
    if (!row.advice.is_worth_it)
      std::cout << row.record.name << ": the report does not advise it: an access touches "
                << fmt::format("{:.2f} lines, and {:.2f} in the other order\n",
                               row.advice.lines_before, row.advice.lines_after);
    copy_folder(arguments_.folder, before_);
    copy_folder(arguments_.folder, after_);
    const std::vector<std::string> flags = words_of(arguments_.flags);
    const SourceFolder before{before_, arguments_.files, flags},
        after{after_, arguments_.files, flags};
    refuse_uses_of_order(before, row.record.name, work_.path());
    run_clang_tool(after, {kFieldEditor, "-i", "--record-name=" + row.record.name,
                           fmt::format("--fields-order={}", fmt::join(order, ","))});
    keep_changed();
    if (changed_.empty())
      base::fail(
          "{}: {} changed nothing; if it said above why, move the members by hand; else name "
          "the files that define it and use it; it moves no members of a struct without a "
          "tag, none that are declared together (`int a, b;`) or on one line, and none of a "
          "macro: move these by hand",
          row.record.name, kFieldEditor);
    const std::vector<std::string> to_look_at =
        refuse_other_values(before, after, row.record.name, work_.path());
    refuse_new_uninitialized(before, after, work_.path());
    std::cout << std::flush;
    for (const auto &[file, text] : changed_)
      run_in(work_.path(), {"diff", "-u", "before/" + file, "after/" + file});
    for (const std::string &each : to_look_at)
      std::cout << "\nassay: " << each << '\n';
    if (arguments_.check)
      check(row);
    give();
    return 0;
  }

private:
  // Before anything is built there.
  void keep_changed() {
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(after_)) {
      const fs::path file = fs::relative(entry.path(), after_);
      if (entry.is_symlink() || !entry.is_regular_file())
        continue;
      if (std::string text = text_of(entry.path()); text != text_of(before_ / file))
        changed_[file.string()] = std::move(text);
    }
  }

  void build(const fs::path &folder) {
    if (!arguments_.build.empty() && run_in(folder, {"sh", "-c", arguments_.build}) != 0)
      base::fail("--build: `{}` failed in a copy of the folder", arguments_.build);
  }

  void measure(const fs::path &folder, Measured &to, unsigned round) {
    const fs::path out = folder.string() + ".out" + std::to_string(round);
    ChildSettings settings;
    settings.quiet = true;
    settings.environment = {{"ASSAY_OPTIONS", "dir=" + out.string()}};
    const fs::path output = out.string() + ".printed";
    const double begin = children_cpu_s();
    const int status = run_in(folder, printing_to(output, command_), settings);
    if (round == 0)
      to.status = status;
    if (status == 127 || status > 128)
      base::fail("--check: {} {}", command_[0],
                 status == 127 ? "is not there, in a copy of the folder"
                               : fmt::format("was ended by signal {}", status - 128));
    to.cpu_s.push_back(children_cpu_s() - begin);
    const std::string printed = without(folder, text_of(output));
    if (round == 0)
      to.printed = printed;
    to.is_printed &= printed == to.printed;
    if (round == 0 && !fs::exists(out))
      base::fail("--check: {} wrote no profile; build it with fields: --build 'make "
                 "CC=\"assay-cc -fassay=fields\"'",
                 command_[0]);
    if (round == 0)
      to.lines = find_struct(result_of({out.string()}), arguments_.record).advice.lines_before;
  }

  void check(const analyze::StructRow &row) {
    build(before_);
    build(after_);
    Measured before, after;
    for (unsigned round = 0; round < std::max(arguments_.rounds, 1U); round++) {
      measure(before_, before, round);
      measure(after_, after, round);
    }
    report::Table table;
    table.column(row.record.name, report::Table::Align::left);
    for (const char *name : {"before", "foretold", "after"})
      table.column(name, report::Table::Align::right);
    auto number = [](double n) { return fmt::format("{:.2f}", n); };
    table.row({"lines of an access", number(before.lines), number(row.advice.lines_after),
               number(after.lines)});
    table.row({"CPU seconds", number(before.median()), "", number(after.median())});
    std::cout << "\nassay: " << base::with_noun(arguments_.rounds, "run")
              << " of each in turn, as built\n"
              << table.text(report::Style{}) << std::flush;
    compare_printed(before, after);
  }

  // The two copies lie in two folders, whose names a program may print.
  static std::string without(const fs::path &folder, std::string text) {
    for (const std::string &name : {fs::canonical(folder).string(), folder.string()})
      for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
        text.erase(at, name.size());
    return text;
  }

  void compare_printed(const Measured &before, const Measured &after) const {
    if (before.status != after.status)
      base::fail("--check: {} ends with status {}, and with {} where the members are in the other "
                 "order; nothing was changed",
                 command_[0], before.status, after.status);
    if (before.is_printed && !after.is_printed && arguments_.rounds > 1)
      base::fail("--check: {} prints the same in each of {} runs, and where the members are in the "
                 "other order not; nothing was changed; look for members that are used before they "
                 "are set",
                 command_[0], arguments_.rounds);
    if (!before.is_printed || !after.is_printed)
      std::cout << "assay: what " << command_[0]
                << " prints is not the same in each run, so it was not compared\n";
    else if (before.printed != after.printed)
      base::fail("--check: {} prints something else where the members are in the other order{}; "
                 "nothing was changed; look for code that knows them by their order or their "
                 "offsets",
                 command_[0], before.cpu_s.size() > 1 ? "" : ", or in each run (--rounds 2 tells)");
  }

  // The editor would say it among its own errors; and a file outside of the copy it would change in place.
  void check_files() const {
    for (const std::string &file : arguments_.files) {
      const fs::path path = fs::path(file).lexically_normal();
      if (path.is_absolute() || path.begin()->string() == "..")
        base::fail(
            "{}: it is named from elsewhere than the folder that is copied, {}; name it from "
            "there on, and another folder with --folder",
            file, arguments_.folder);
      if (!fs::is_regular_file(fs::path(arguments_.folder) / path))
        base::fail("{}: there is no such file in {}; name the sources from there on, and another "
                   "folder with --folder",
                   file, arguments_.folder);
    }
  }

  // Before the work is done that would be lost.
  void check_target() const {
    const fs::path to = arguments_.to;
    if (to.empty())
      return;
    if (fs::exists(to) && !(fs::is_directory(to) && fs::is_empty(to)))
      base::fail("--to: {} is there already, and not empty", to.string());
    const fs::path from = fs::canonical(arguments_.folder),
                   real = fs::weakly_canonical(fs::absolute(to));
    if (std::ranges::mismatch(from, real).in1 == from.end())
      base::fail("--to: {} lies in the folder that is copied; name one outside of {}", to.string(),
                 from.string());
  }

  // What differs, where the user wants it.
  void give() {
    const fs::path to = arguments_.yes ? fs::path(arguments_.folder) : fs::path(arguments_.to);
    if (to.empty()) {
      std::cout
          << "\nassay: nothing was changed; --yes changes the files, --to DIR writes a copy\n";
      return;
    }
    if (!arguments_.yes)
      copy_folder(arguments_.folder, to);
    for (const auto &[file, text] : changed_) {
      base::OutputFile changed((to / file).string());
      changed.write(std::as_bytes(std::span(text)));
      changed.commit();
    }
    std::cout << fmt::format("\nassay: {} changed in {}\n",
                             base::with_noun(changed_.size(), "file"), to.string());
  }

  const ApplyArguments &arguments_;
  const std::vector<std::string> &profiles_; // if none is among the arguments
  const Words &command_;
  TemporaryFolder work_{"assay-apply"};
  fs::path before_ = work_.path() / "before", after_ = work_.path() / "after";
  std::map<std::string, std::string> changed_; // by file, from the folder on: its new text
};

} // namespace

Action define_fields_apply(CommandLine line, const std::vector<std::string> &profiles) {
  auto arguments = std::make_shared<ApplyArguments>();
  line.add_option("struct", arguments->record, "the struct or class, as the report names it");
  line.add_option("files", arguments->files,
                  "the sources that define it and use it, from the folder on");
  line.add_option(
      "--profile", arguments->profile,
      "what was measured; the profiles named before `apply`, or assay.out, if not given");
  line.add_option("--folder", arguments->folder,
                  "the folder of the sources; this one if not given");
  line.add_option("--flags", arguments->flags,
                  "what the sources are compiled with: '-Iinclude -DX'");
  line.add_flag("--yes", arguments->yes, "change the files, once the difference was shown");
  line.add_option("--to", arguments->to, "write a changed copy of the folder there");
  line.add_flag("--check", arguments->check,
                "build and run both, named after --, and say what changed");
  line.add_option("--build", arguments->build,
                  "the shell command that builds a copy of the folder");
  line.add_option("--rounds", arguments->rounds, "runs of each for --check; 5 if not given");
  line.set_footer("\nWithout --yes and --to it only shows the difference.\n\nExamples:\n"
                  "  assay fields apply Node list.c tree.c --flags '-Iinclude'\n"
                  "  assay fields apply Node list.c --check --build 'make CC=\"assay-cc "
                  "-fassay=fields\"' -- ./app\n");
  return [arguments, &profiles](const Words &after_dashes) {
    if (arguments->record.empty())
      base::fail("fields apply: which struct? write `assay fields apply STRUCT FILES`");
    if (arguments->files.empty())
      base::fail("fields apply: which sources define and use {0}? write `assay fields apply {0} "
                 "FILES`",
                 arguments->record);
    return Apply(*arguments, profiles, after_dashes).run();
  };
}

} // namespace cli
