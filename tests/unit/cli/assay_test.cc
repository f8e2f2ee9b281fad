// The program itself: what it prints where, and its exit status.

#include "abi/tools.h"
#include "tests/unit/profile/profile_builder.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

namespace fs = std::filesystem;

namespace {

struct Outcome {
  int status = 0; // 128 + signal for a signal
  std::string output, errors;
};

std::string content(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Assay : public testing::Test {
protected:
  Outcome run(const std::string &arguments) {
    std::string command = "cd " + folder_ + " && exec " ASSAY_PROGRAM " " + arguments +
                          " >output 2>errors </dev/null";
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            content(folder_ + "/output"), content(folder_ + "/errors")};
  }
  TemporaryFolder temporary_;
  const std::string &folder_ = temporary_.path();
};

TEST_F(Assay, WithoutAProfileSaysWhatToDo) {
  Outcome o = run("heap");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.output, "");
  EXPECT_EQ(o.errors,
            "assay: no profile found in assay.out; make one with `assay run -- ./app` (built "
            "with assay-cc) or `assay values record -- ./app`, or name one\n");
}

TEST_F(Assay, CompletionsNameEveryCommandAndOption) {
  for (const char *shell : {"bash", "zsh", "fish", "man"}) {
    Outcome o = run(std::string("completions ") + shell);
    EXPECT_EQ(o.status, 0) << o.errors;
    for (const char *word : {"heap", "run", "snapshot", "no-stacks", "no-aslr"}) {
      std::string text = o.output;
      std::erase(text, '\\');
      EXPECT_NE(text.find(word), std::string::npos) << shell << " " << word;
    }
  }
  run("completions bash -o words");
  std::string script = "bash -c 'cd " + folder_ +
                       " && . ./words && COMP_WORDS=(assay heap --no) COMP_CWORD=2 && _assay && "
                       "test \"${COMPREPLY[*]}\" = --no-stacks'";
  EXPECT_EQ(std::system(script.c_str()), 0);
  EXPECT_EQ(run("completions tcsh").status, 2);
}

// What an option takes, where its help lists it; and of a command's parts the options of the one that is named.
TEST_F(Assay, CompletionsKnowKeysAndParts) {
  run("completions bash -o words");
  struct {
    const char *words;
    int at;
    const char *wanted;
  } const cases[] = {
      {"assay heap --sort pe", 3, "peak"},        {"assay heap --sort = pe", 4, "peak"},
      {"assay report --sort wa", 3, "waste"},     {"assay trace cache --sort llc", 4, "llc"},
      {"assay run --options dep", 3, "depth="},   {"assay trace cache --lo", 3, ""},
      {"assay trace cache --llc", 3, "--llc"},    {"assay trace record --lo", 3, "--log"},
      {"assay trace rec", 2, "record"},           {"assay fields --thr", 2, "--threshold"},
      {"assay fields apply --buil", 3, "--build"}};
  for (auto [words, at, wanted] : cases) {
    const std::string script = "cd " + folder_ + " && bash -c '. ./words; COMP_WORDS=(" + words +
                               ") COMP_CWORD=" + std::to_string(at) +
                               "; _assay; echo \"${COMPREPLY[*]}\"' > completed";
    EXPECT_EQ(std::system(script.c_str()), 0);
    EXPECT_EQ(content(folder_ + "/completed"), std::string(wanted) + "\n") << words;
  }
  for (const char *shell : {"zsh", "fish"}) {
    const std::string text = run(std::string("completions ") + shell).output;
    EXPECT_NE(text.find("depth= "), std::string::npos) << shell;
    EXPECT_NE(text.find("l1 l2 llc tlb"), std::string::npos) << shell;
  }
}

TEST_F(Assay, TextGoesToStandardOutput) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  Outcome o = run("heap one.assay");
  EXPECT_EQ(o.status, 0) << o.errors;
  EXPECT_EQ(o.errors, "");
  EXPECT_EQ(o.output.find("assay heap: /bin/app"), 0u);
  EXPECT_EQ(o.output.find('\x1b'), std::string::npos);
}

TEST_F(Assay, JsonIsTheSameWhereverItGoes) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  Outcome o = run("heap --json one.assay");
  EXPECT_EQ(o.status, 0) << o.errors;
  EXPECT_EQ(nlohmann::json::parse(o.output)["schema"], "assay.heap/1");
  EXPECT_EQ(run("heap --json -o - one.assay").output, o.output);
  EXPECT_EQ(run("heap --json -o one.json one.assay").output, "");
  EXPECT_EQ(content(folder_ + "/one.json"), o.output);
}

TEST_F(Assay, WhatCannotBeWrittenIsOneSentence) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  for (const char *form : {"", "--json "}) {
    Outcome o = run(std::string("heap one.assay -o /dev/full ") + form);
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.errors,
              "assay: /dev/full: it cannot be written: No space left on device; free some "
              "space or choose another place\n");
    o = run(std::string("heap one.assay -o nowhere/x ") + form);
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.errors, "assay: nowhere/x: it cannot be written: No such file or directory; choose "
                        "another place\n");
    std::string heap = "cd " + folder_ + " && " ASSAY_PROGRAM " heap one.assay " + form;
    int status = std::system((heap + ">/dev/full 2>errors").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2);
    EXPECT_EQ(content(folder_ + "/errors").find("assay: standard output: it cannot be written: "),
              0u);
    status = std::system((heap + ">&- 2>errors").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2);
    EXPECT_EQ(content(folder_ + "/errors"), "assay: standard output: it is closed; send it to a "
                                            "file or a pipe, or leave it open\n");
    // A reader that went away is content with what it has.
    status = std::system(("bash -c '" + heap + "2>errors | true; exit ${PIPESTATUS[0]}'").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(content(folder_ + "/errors"), "");
  }
}

TEST_F(Assay, TreeTakesAKeyADirectionOrNothing) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  for (const char *arguments :
       {"heap --tree one.assay", "heap one.assay --tree", "heap --tree bytes one.assay",
        "heap --tree=bottom-up one.assay", "heap one.assay --tree count,top-down --tree-min 0%"}) {
    Outcome o = run(arguments);
    EXPECT_EQ(o.status, 0) << o.errors;
    EXPECT_NE(o.output.find("come from?"), std::string::npos) << arguments;
  }
  Outcome o = run("heap one.assay --json --tree=live,bottom-up");
  EXPECT_NE(o.output.find("\"direction\": \"bottom-up\""), std::string::npos);
  o = run("heap one.assay --tree nonsense");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.errors, "assay: --tree nonsense: there is no such key; use one of bytes, count, "
                      "accesses, live, peak, top-down, bottom-up\n");
  EXPECT_EQ(run("heap one.assay --tree --tree-min 3").status, 2);
}

TEST_F(Assay, OptionsThatWouldChangeNothingAreRefused) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  Outcome o = run("heap one.assay --tree-min 5%");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.errors.find("assay: heap: --tree-min leaves out parts of a tree, and none was asked "
                          "for; add --tree"),
            0u);
  o = run("heap one.assay --tree --sort peak");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.errors.find("assay: heap: --sort is about tables"), 0u) << o.errors;
  EXPECT_EQ(run("heap one.assay --tree --top 3").errors.find("assay: heap: --top is about"), 0u);
  EXPECT_EQ(run("heap one.assay --tree --sort peak --json").status, 0); // it has tables beside it
}

TEST_F(Assay, WrappersThatNoFunctionMatchesAreSaid) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  for (const char *command :
       {"heap one.assay", "report one.assay", "report --filter module one.assay",
        "diff one.assay one.assay", "check one.assay --fail-if 'totals.peak_bytes > 1GiB'"}) {
    Outcome o = run(std::string(command) + " --wrapper nobody --wrapper module");
    EXPECT_EQ(o.errors, "assay: --wrapper 'nobody' changes nothing: no function that it matches "
                        "stands between an allocation and its owner; check the name\n")
        << command;
    EXPECT_LT(o.status, 2) << command;
  }
}

TEST_F(Assay, KnownLeaksAreLeftOutAndSaid) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  std::ofstream(folder_ + "/leaks.txt") << "# ours\nleak:module\n";
  Outcome o = run("heap --suppressions leaks.txt one.assay");
  EXPECT_EQ(o.status, 0) << o.errors;
  EXPECT_NE(o.output.find("  --suppressions: "), std::string::npos);
  EXPECT_NE(o.output.find(" contexts, by 1 of 1 pattern\n"), std::string::npos);
  o = run("heap --suppressions absent.txt one.assay");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.errors, "assay: absent.txt: these suppressions cannot be read: No such file or "
                      "directory; check the name\n");
  std::ofstream(folder_ + "/leaks.txt") << "fun:malloc\n";
  o = run("heap --suppressions leaks.txt one.assay");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.errors.find("assay: leaks.txt:1: 'fun:malloc' is not a suppression"), 0u);
}

TEST_F(Assay, WrappersMayBeNamedWhereOwnersAre) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  for (const char *command :
       {"heap one.assay", "diff one.assay one.assay",
        "check one.assay --fail-if 'totals.peak_bytes > 1GiB'", "workingset one.assay"}) {
    Outcome o = run(std::string(command) + " --wrapper ^zmalloc --wrapper '('");
    EXPECT_EQ(o.status, 2) << command;
    EXPECT_EQ(o.errors, "assay: --wrapper '(': it is not a regular expression; escape brackets "
                        "with a backslash\n");
  }
  EXPECT_EQ(run("heap --wrapper ^zmalloc one.assay").status, 0); // what follows is a profile
  EXPECT_EQ(run("diff --wrapper ^zmalloc one.assay one.assay").status, 0);
}

TEST_F(Assay, EachProgramHasASection) {
  profile::Profile one = profile_builder::random_profile(1);
  profile::Profile again = profile_builder::random_profile(2);
  profile::Profile other = profile_builder::random_profile(3);
  other.processes[0].executable = "/bin/other";
  profile::write(one, folder_ + "/one.assay");
  profile::write(again, folder_ + "/again.assay");
  profile::write(other, folder_ + "/other.assay");
  Outcome o = run("heap one.assay again.assay other.assay");
  EXPECT_EQ(o.status, 0) << o.errors;
  EXPECT_EQ(o.output.find("Program 1 of 2, build id "), 0u);
  EXPECT_NE(o.output.find("\n\nProgram 2 of 2, build id "), std::string::npos);
  EXPECT_NE(o.output.find("\nassay heap: /bin/other"), std::string::npos);
  EXPECT_NE(o.output.find("  sum of 2 processes\n"), std::string::npos);
  o = run("heap one.assay again.assay");
  EXPECT_EQ(o.output.find("assay heap: /bin/app"), 0u);

  o = run("heap --json one.assay again.assay other.assay");
  auto json = nlohmann::json::parse(o.output);
  ASSERT_EQ(json["programs"].size(), 2u);
  uint64_t objects = 0;
  for (const auto &program : json["programs"]) {
    EXPECT_EQ(program["schema"], "assay.heap/1");
    objects += program["totals"]["alloc_count"].get<uint64_t>();
  }
  EXPECT_EQ(objects, json["totals"]["alloc_count"]);
  EXPECT_FALSE(nlohmann::json::parse(run("heap --json one.assay").output).contains("programs"));
}

// Merged, programs cannot be told apart any more: all are named, and what has one name is one row.
TEST_F(Assay, AMergeOfSeveralProgramsIsTheirSumAndSaysSo) {
  profile::Profile one = profile_builder::random_profile(1),
                   other = profile_builder::random_profile(3);
  other.processes[0].executable = "/bin/other";
  profile::write(one, folder_ + "/one.assay");
  profile::write(other, folder_ + "/other.assay");
  Outcome o = run("merge -o sum.assay one.assay other.assay");
  EXPECT_EQ(o.status, 0);
  EXPECT_NE(o.errors.find("assay: merge: this is the sum of 2 programs (/bin/app, /bin/other)"),
            std::string::npos)
      << o.errors;
  o = run("heap sum.assay");
  EXPECT_EQ(o.output.find("assay heap: /bin/app, /bin/other\n  sum of 2 processes of 2 programs\n"),
            0u)
      << o.output;
  EXPECT_NE(o.output.find("name their own profiles, and each program is answered by itself"),
            std::string::npos);
  o = run("report sum.assay");
  EXPECT_EQ(o.output.find("assay report: /bin/app, /bin/other\n"), 0u) << o.output;
  EXPECT_NE(o.output.find("2 processes of 2 programs\n"), std::string::npos);
  EXPECT_EQ(run("merge -o twice.assay one.assay one.assay").errors, "");
}

TEST_F(Assay, MergeAddsAndDumpPrints) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  profile::write(profile_builder::random_profile(2), folder_ + "/two.assay");
  EXPECT_EQ(run("merge -o sum.assay one.assay two.assay").status, 0);
  Outcome o = run("dump sum.assay");
  EXPECT_EQ(o.status, 0);
  EXPECT_NE(o.output.find("HeapFreed context="), std::string::npos);
  EXPECT_EQ(profile::read({folder_ + "/sum.assay"}).processes.size(), 2u);
}

// What is in it tests/web reads in a browser.
TEST_F(Assay, HtmlIsOneFileWithoutANetwork) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  EXPECT_EQ(run("heap --format html -o page.html one.assay").status, 0);
  const std::string page = content(folder_ + "/page.html");
  EXPECT_EQ(page.find("<!doctype html>"), 0u);
  EXPECT_NE(page.find("id=\"data\">"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(run("heap --format html one.assay").output, page);
  EXPECT_EQ(run("heap --format htm one.assay").status, 2);
}

TEST_F(Assay, WrongUsageIsTwo) {
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("nonsense").status, 2);
  EXPECT_EQ(run("heap --nonsense").status, 2);
  EXPECT_EQ(run("heap --sort nonsense").status, 2);
}

TEST_F(Assay, WhatACommandShallDoIsAskedFor) {
  for (const char *words : {"values", "values file.assay", "values recrod"}) {
    Outcome o = run(words);
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.errors, std::string("assay: ") + words +
                            ": behind values comes what it shall do: record, report, annotate or "
                            "conflicts; `assay values --help` says what each is for\n");
  }
}

TEST_F(Assay, AnUnknownCommandIsNamedAndTheNearestSuggested) {
  for (auto [word, nearest] :
       {std::pair("heep", "heap"), {"nosuch", ""}, {"snapshto", "snapshot"}, {"dmp", "dump"}}) {
    Outcome o = run(word);
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.errors.find(std::string("assay: ") + word + ": there is no such command; "), 0u)
        << o.errors;
    if (*nearest)
      EXPECT_NE(o.errors.find(std::string("did you mean `assay ") + nearest + "`?"),
                std::string::npos)
          << o.errors;
  }
}

TEST_F(Assay, SaysWhatIsWrongWithAnOptionAndWhereItsHelpIs) {
  struct {
    const char *arguments, *sentence;
    int status = 2;
  } const wrong[] = {
      {"run -o a -o b -- true", "--output is given more than once; `assay run --help`", 125},
      {"trace record -o a -o b -- true",
       "--output is given more than once; `assay trace record --help`", 125},
      {"heap --bogus", "there is no option --bogus; `assay heap --help`"},
      {"values report --bogus", "there is no option --bogus; `assay values report --help`"},
      {"explain a b --bogus c d", "there is no option --bogus; `assay explain --help`"},
      {"explain a b c d", "too many arguments: c d; `assay explain --help`"},
      {"heap --top", "--top needs a value; `assay heap --help`"},
      {"heap --top x", "--top x: this is no number that it takes; `assay heap --help`"},
      {"heap --top -1", "--top -1: this is no number that it takes; `assay heap --help`"},
      {"heap --sort a --sort b", "--sort is given more than once; `assay heap --help`"},
      {"export", "--format is required; `assay export --help`"},
      {"--bogus", "there is no option --bogus; `assay --help`"},
      {"trace --bogus", "there is no option --bogus; `assay trace --help`"}};
  for (auto [arguments, sentence, status] : wrong) {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.status, status) << arguments;
    EXPECT_EQ(o.errors, std::string("assay: ") + sentence + " shows how it is used\n");
  }
}

TEST_F(Assay, AQuantityThatIsNotUnderstoodNamesItsOption) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  struct {
    const char *arguments, *option, *what;
  } const wrong[] = {
      {"trace record --start-after 1x -- true", "--start-after '1x'",
       "a time and not a number of accesses; write it like 2s, or like 10M"},
      {"trace record --stop-after foos -- true", "--stop-after 'foos'",
       "a time and not a number of accesses; write it like 2s, or like 10M"},
      {"trace record --window 1x/2s -- true", "--window '1x'", "a time that is understood here; "},
      {"workingset --cache foo one.assay", "--cache 'foo'", "a number of bytes that "},
      {"workingset --line foo one.assay", "--line 'foo'", "a number of bytes that "},
      {"fields --threshold foo one.assay", "--threshold 'foo'", "a share that "},
      {"heap --tree --tree-min foo one.assay", "--tree-min 'foo'", "a share that "},
      {"check --baseline one.assay --max-growth 5 one.assay", "--max-growth '5'", "a growth that "},
      {"trace run --analysis cache --l1 -1,8 -- true", "--l1 '-1'", "a number of bytes that "},
      {"trace run --analysis cache --tlb 64,x -- true", "--tlb 'x'", "a number that "},
      {"trace run --analysis cache --page 4k -- true", "--page '4k'", "a number of bytes that "},
      {"trace run --analysis mrc --samples x -- true", "--samples 'x'", "a number that "},
      {"values record -F foo -- true", "-F 'foo'", "a number that "},
      {"values record --duration foo -- true", "--duration 'foo'", "a time that "}};
  for (auto [arguments, option, what] : wrong) {
    const Outcome o = run(arguments);
    EXPECT_NE(o.status, 0) << arguments;
    EXPECT_EQ(o.errors.find(std::string("assay: ") + option + ": this is not " + what), 0u)
        << o.errors;
    EXPECT_EQ(std::count(o.errors.begin(), o.errors.end(), '\n'), 1) << o.errors;
  }
}

TEST_F(Assay, WhatFieldsApplyNeedsIsAskedFor) {
  EXPECT_EQ(run("fields one.assay apply").errors,
            "assay: fields apply: which struct? write `assay fields apply STRUCT FILES`\n");
  EXPECT_EQ(run("fields apply Node").errors,
            "assay: fields apply: which sources define and use Node? write `assay fields apply "
            "Node FILES`\n");
}

TEST_F(Assay, AProfileIsNoTrace) {
  fs::create_directories(folder_ + "/runs/20250101-000000-app.1");
  profile::write(profile_builder::random_profile(1),
                 folder_ + "/runs/20250101-000000-app.1/app.1.assay");
  for (const char *command : {"trace info runs", "trace info runs/20250101-000000-app.1"}) {
    const std::string folder = std::string(command).substr(11);
    EXPECT_EQ(run(command).errors,
              "assay: " + folder + ": it holds a profile, which `assay report " + folder +
                  "` reads, and no trace; make one with `assay trace record -- ./app`\n");
  }
  fs::create_directory(folder_ + "/empty");
  EXPECT_EQ(run("trace info empty").errors,
            "assay: empty: there is no trace; make one with `assay trace record -- ./app`\n");
}

// Only its values were sampled: it may be a program that nobody can build.
TEST_F(Assay, WithoutAHeapABuildIsNotTheOnlyWay) {
  profile::Profile sampled;
  sampled.processes.emplace_back().tools = ASSAY_TOOL_values;
  profile::write(sampled, folder_ + "/values.assay");
  EXPECT_EQ(run("heap values.assay").errors,
            "assay: heap: the heap was not measured in this profile; build the program with "
            "-fassay=heap,workingset, and run it again; without a build, `assay run --preload` "
            "records its allocations\n");
  sampled.processes.front().tools = ASSAY_TOOL_fields;
  profile::write(sampled, folder_ + "/fields.assay");
  EXPECT_EQ(run("heap fields.assay").errors.find("preload"), std::string::npos);
}

TEST_F(Assay, HelpIsACommandToo) {
  for (auto [words, command] : {std::pair("help", "--help"),
                                {"help heap", "heap --help"},
                                {"help run --help", "run --help"},
                                {"help trace record", "trace record --help"}}) {
    const Outcome asked = run(words), wanted = run(command);
    EXPECT_EQ(asked.status, 0) << asked.errors;
    EXPECT_EQ(asked.output, wanted.output);
    EXPECT_NE(asked.output.find("Examples:"), std::string::npos);
  }
  EXPECT_EQ(run("help heep").errors, run("heep").errors);
  EXPECT_EQ(run("help run ./app").errors,
            "assay: help: there is no help on `run ./app`; write `assay help run`\n");
}

TEST_F(Assay, IdsThatNoProcessHasAreRefused) {
  for (const char *id : {"0", "-1", "999999999"}) {
    const Outcome o = run(std::string("snapshot -p ") + id);
    EXPECT_EQ(o.status, 2) << id;
    EXPECT_EQ(o.errors,
              std::string("assay: there is no process ") + id + "; check the process id\n");
  }
}

TEST_F(Assay, UsageOfACommandThatRunsAProgramNamesTheProgram) {
  for (const char *command : {"run", "values record", "trace record"})
    EXPECT_NE(
        run(std::string(command) + " --help").output.find("[OPTIONS] [-- PROGRAM [ARGUMENT...]]\n"),
        std::string::npos)
        << command;
}

TEST_F(Assay, AFilterThatMatchesNothingSaysSo) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  Outcome o = run("heap --filter nomatch one.assay");
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.errors, "");
  EXPECT_NE(
      o.output.find("  --filter 'nomatch' matches no function, type, origin or module of its "),
      std::string::npos)
      << o.output;
  EXPECT_EQ(o.output.find(" 100 %"), std::string::npos);
  EXPECT_EQ(o.output.find("allocations of"), std::string::npos);
  o = run("heap --json --filter nomatch one.assay");
  EXPECT_EQ(o.status, 0);
  auto json = nlohmann::json::parse(o.output);
  for (const char *table : {"contexts", "sites", "types", "modules", "globals", "events"})
    EXPECT_TRUE(json[table].empty()) << table;
}

// The next command can be pasted, whatever the folder is called.
TEST_F(Assay, AFilteredHeadSaysWhatIsOfWhat) {
  profile::write(profile_builder::random_profile(1, 30), folder_ + "/one.assay");
  const std::string whole = run("heap one.assay").output;
  const std::string run_text = whole.substr(0, whole.find("; "));
  const std::string some = run("heap --filter 'Type1$' one.assay").output;
  EXPECT_NE(some.find(run_text + "\n  of that --filter 'Type1$' keeps "), std::string::npos)
      << some;
  // Of what all tools say, too.
  const std::string report = run("report --filter 'Type1$' one.assay").output;
  EXPECT_NE(report.find("  --filter 'Type1$' keeps 1 of "), std::string::npos) << report;
  EXPECT_NE(report.find("amounts and shares are those of the whole run\n"), std::string::npos);
  EXPECT_NE(report.find(run_text.substr(run_text.find('\n') + 3)), std::string::npos) << report;
}

TEST_F(Assay, ADiffOfNothingThatMatchesSaysSo) {
  profile::write(profile_builder::random_profile(1, 30), folder_ + "/one.assay");
  profile::write(profile_builder::random_profile(2, 30), folder_ + "/two.assay");
  const std::string text = run("diff --filter nomatch one.assay two.assay").output;
  EXPECT_EQ(text.find("  --filter 'nomatch' matches nothing in either run\n"), 0u) << text;
  EXPECT_EQ(text.find("no difference"), std::string::npos) << text;
  Outcome o = run("diff --json --filter nomatch one.assay two.assay");
  EXPECT_EQ(nlohmann::json::parse(o.output)["without_match"], nlohmann::json({"heap"}));
}

TEST_F(Assay, RunQuotesTheFolderThatItNames) {
  profile::write(profile_builder::random_profile(1), folder_ + "/one.assay");
  Outcome o =
      run("run -o \"it's here\" -- sh -c 'mkdir -p \"$0/x.$$\" && cp one.assay \"$0/x.$$\"' "
          "\"it's here\"");
  EXPECT_EQ(o.status, 0) << o.errors;
  size_t next = o.errors.find("assay: next: assay ");
  ASSERT_NE(next, std::string::npos) << o.errors;
  std::string command = o.errors.substr(next + 19);
  EXPECT_EQ(command.find("heap 'it'\\''s here/x."), 0u) << command;
  EXPECT_EQ(run(command.substr(0, command.find('\n'))).status, 0);
}

TEST_F(Assay, EveryCommandHelpsWithExamples) {
  for (const char *command : {
#define ASSAY_COMMAND(name, help) #name,
#include "cli/commands.def"
       }) {
    Outcome o = run(std::string(command) + " --help");
    EXPECT_EQ(o.status, 0);
    EXPECT_NE(o.output.find("Examples:\n  assay "), std::string::npos) << command;
  }
}

TEST_F(Assay, HelpThatCannotBeWrittenIsAFailure) {
  for (const char *arguments : {"--help", "--version", "heap --help", "run --help"}) {
    const std::string command = "cd " + folder_ + " && " ASSAY_PROGRAM " " + arguments;
    const int status = std::system((command + " >/dev/full 2>errors").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << arguments;
    EXPECT_EQ(content(folder_ + "/errors"),
              "assay: standard output: it cannot be written: No space left on device; free some "
              "space or choose another place\n");
  }
}

TEST_F(Assay, RunPassesOnStatusOutputAndArguments) {
  Outcome o = run("run -- sh -c 'echo \"$1\"; exit 7' sh --top");
  EXPECT_EQ(o.status, 7);
  EXPECT_EQ(o.output, "--top\n");
  EXPECT_EQ(o.errors, "assay: sh wrote no profile into assay.out; if nothing above says why, was "
                      "it built with assay-cc? If not: assay "
                      "run --preload\n");
}

TEST_F(Assay, RunAddsNoWordOfItsOwn) {
  std::string count = "sh -c 'echo $#' sh";
  EXPECT_EQ(run("run -- " + count).output, "0\n");
  EXPECT_EQ(run("run -- " + count + " -- a").output, "2\n");
  EXPECT_EQ(run("run " + count + " --top").output, "1\n");
}

TEST_F(Assay, RunDiesByTheSameSignal) {
  EXPECT_EQ(run("run -- sh -c 'kill -TERM $$'").status, 128 + 15);
}

TEST_F(Assay, RunTellsFailuresApart) {
  EXPECT_EQ(run("run -- ./absent").status, 127);
  std::ofstream(folder_ + "/plain") << "x";
  EXPECT_EQ(run("run -- ./plain").status, 126);
  EXPECT_EQ(run("run").status, 125);
  EXPECT_EQ(run("run -o \"a:b'\\\"\" -- true").status, 125);
}

TEST_F(Assay, RunNamesTheOptionThatItDoesNotKnow) {
  for (const char *arguments : {"run --bogus -- true", "run --bogus=1 true", "run -x true"}) {
    Outcome o = run(arguments);
    EXPECT_EQ(o.status, 125);
    EXPECT_EQ(o.errors.find("assay: run: there is no option -"), 0u) << o.errors;
  }
  EXPECT_EQ(run("run -- true --bogus").status, 0);
}

TEST_F(Assay, RunRefusesOptionsThatTheRuntimeWouldIgnore) {
  for (const char *options :
       {"foo=bar", "depth=x", "depth", "depth=", "depth=-1", "depth=3x", "depth=17179869184g",
        "signals=2", "signals=1k", "dir=a:flush_ms=1s", "\"dir='a\"", "\"depth='3'4\""}) {
    Outcome o = run(std::string("run --options ") + options + " -- touch begun");
    EXPECT_EQ(o.status, 125) << options;
    EXPECT_EQ(o.errors.find("assay: --options: "), 0u) << o.errors;
    EXPECT_FALSE(fs::exists(folder_ + "/begun")) << options;
  }
  for (const char *options : {"depth=3:", "contexts=16k:depth=\"'3'\"", "signals=0"})
    EXPECT_EQ(run(std::string("run --options ") + options + " -- true").status, 0) << options;
}

TEST_F(Assay, RunHandsOptionsOn) {
  Outcome o = run("run -o place --options depth=3 -- sh -c 'echo $ASSAY_OPTIONS'");
  EXPECT_EQ(o.output.find("depth=3:dir=place:run="), 0u) << o.output;
  EXPECT_NE(o.output.find("-sh."), std::string::npos) << o.output; // TIME-PROGRAM.PID
}

TEST_F(Assay, SnapshotOfAStrangerIsRefused) {
  Outcome o = run("snapshot -p 1");
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.errors.find("assay: "), 0u);
}

} // namespace
