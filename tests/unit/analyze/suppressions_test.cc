// Suppressions mean what LeakSanitizer's mean.

#include "analyze/suppressions.h"

#include "analyze/heap.h"
#include "base/fail.h"
#include "tests/unit/profile/profile_builder.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace {

using analyze::suppression_matches;
using analyze::Suppressions;

image::Frame frame(const std::string &function, const std::string &file,
                   const std::string &module) {
  image::Frame frame;
  frame.function = function;
  frame.file = file;
  frame.module = module;
  return frame;
}

TEST(Suppressions, PatternsAreSearchedFor) {
  EXPECT_TRUE(suppression_matches("make", "app::make_node(int)"));
  EXPECT_FALSE(suppression_matches("made", "app::make_node(int)"));
  EXPECT_TRUE(suppression_matches("app*node", "app::make_node(int)"));
  EXPECT_FALSE(suppression_matches("node*app", "app::make_node(int)"));
  EXPECT_TRUE(suppression_matches("*", ""));
  EXPECT_TRUE(suppression_matches("a*b*c", "xxaxxbxxcxx"));
  EXPECT_FALSE(suppression_matches("a*b*c", "xxaxxcxxbxx"));
}

TEST(Suppressions, AnchorsBindToTheEnds) {
  EXPECT_TRUE(suppression_matches("^main$", "main"));
  EXPECT_FALSE(suppression_matches("^main$", "domain"));
  EXPECT_FALSE(suppression_matches("^main$", "mainly"));
  EXPECT_TRUE(suppression_matches("^app::*", "app::f"));
  EXPECT_FALSE(suppression_matches("^app::*", "my::app::f"));
  EXPECT_TRUE(suppression_matches(".so$", "/lib/libz.so"));
  EXPECT_FALSE(suppression_matches(".so$", "/lib/libz.so.1"));
  EXPECT_TRUE(suppression_matches("^/usr*.c$", "/usr/src/a.c"));
  EXPECT_FALSE(suppression_matches("^aa*aa$", "aaa"));
  EXPECT_TRUE(suppression_matches("^$", ""));
}

TEST(Suppressions, MatchFunctionFileAndModuleOfAnyFrame) {
  image::CallStack frames = {frame("make", "/src/list.c", "/bin/app"),
                             frame("main", "/src/main.c", "/bin/app"),
                             frame("start", "", "/lib/libc.so.6")};
  for (const char *text : {"leak:make", "leak:main.c", "leak:libc.so*", "leak:^start$"})
    EXPECT_TRUE(Suppressions(text, "x").match(frames)) << text;
  EXPECT_FALSE(Suppressions("leak:nothing", "x").match(frames));
  Suppressions several("# known\n\n  leak:none\r\nleak:main  \n", "x");
  EXPECT_EQ(several.patterns(), 2u);
  EXPECT_TRUE(several.match(frames));
  EXPECT_EQ(several.patterns_used(), 1u);
}

std::string complaint(const std::string &text) {
  try {
    Suppressions read(text, "leaks.txt");
  } catch (const base::Failure &failure) {
    return failure.what();
  }
  return "";
}

TEST(Suppressions, ABadLineIsNamed) {
  EXPECT_EQ(complaint("# comment\nrace:f\n"),
            "leaks.txt:2: 'race:f' is not a suppression of a leak; write leak:PATTERN, or # before "
            "a comment");
  EXPECT_NE(complaint("leak:"), "");
  EXPECT_NE(complaint("make_node"), "");
  EXPECT_EQ(complaint(""), "");
  EXPECT_THROW(analyze::read_suppressions("/no/such/file"), base::Failure);
  EXPECT_THROW(analyze::read_suppressions("/"), base::Failure);
}

TEST(Suppressions, AnEmptyFileSuppressesNothing) {
  TemporaryFolder folder;
  std::string path = folder.in("none");
  std::ofstream(path) << "";
  EXPECT_EQ(analyze::read_suppressions(path).patterns(), 0u);
}

TEST(Suppressions, KnownLeaksAreNoLeaksAndAreCounted) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    profile::Profile p = profile_builder::random_profile(seed, 30);
    image::Symbols symbols = image::open(analyze::module_files(p));
    auto all = analyze::heap(p, symbols, {});
    auto some = analyze::heap(p, symbols, {"", Suppressions("leak:module1", "x"), {}});
    EXPECT_EQ(some.totals.live.size_total, all.totals.live.size_total);
    EXPECT_EQ(some.totals.leaked_bytes() + some.totals.suppressed_bytes,
              all.totals.live.size_total);
    uint64_t contexts = 0, bytes = 0;
    for (const auto &row : some.contexts)
      if (row.suppressed) {
        contexts++;
        bytes += row.sums.live.size_total;
        EXPECT_EQ(row.sums.leaked_bytes(), 0u);
      }
    EXPECT_EQ(some.suppressed_contexts, contexts);
    EXPECT_EQ(some.totals.suppressed_bytes, bytes);
    const auto &question = analyze::heap_question("live");
    for (size_t index : analyze::ranked(some.contexts, question))
      EXPECT_FALSE(some.contexts[index].suppressed);
  }
}

} // namespace
