// What the linker is told, however the compiler is told to tell it.
#include "compiler/linker_words.h"

#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace assay::compiler {
namespace {

LinkerWords words_of(const std::vector<std::string> &arguments) {
  LinkerWords words;
  for (size_t i = 0; i < arguments.size(); i++)
    words.read(arguments[i], i + 1 < arguments.size() ? arguments[i + 1] : "");
  return words;
}

TEST(LinkerWords, LinkedAgain) {
  EXPECT_TRUE(words_of({"-Wl,-r"}).relinks());
  EXPECT_TRUE(words_of({"a.o", "-Wl,-O1,-r,-z,now"}).relinks());
  EXPECT_TRUE(words_of({"-Xlinker", "-r"}).relinks());
  EXPECT_FALSE(words_of({}).relinks());
  EXPECT_FALSE(words_of({"-r"}).relinks()) << "a word of the compiler's";
  EXPECT_FALSE(words_of({"-Wl,-rpath,/lib", "-Xlinker", "-z", "-r"}).relinks());
}

TEST(LinkerWords, Archives) {
  EXPECT_TRUE(words_of({"-Wl,--whole-archive,libz.a,--no-whole-archive"}).names_archive());
  EXPECT_TRUE(words_of({"-Xlinker", "libz.a"}).names_archive());
  EXPECT_FALSE(words_of({"libz.a", "-Wl,-O1"}).names_archive()) << "an input of the compiler's";
}

TEST(LinkerWords, ArchivesThatHideTheRuntime) {
  for (const char *archives : {"ALL", "a.a:ALL", "libassay_rt.a", "libassay_rt_wrap.a"}) {
    const std::string value = archives;
    EXPECT_TRUE(words_of({"-Wl,--exclude-libs," + value}).hides_runtime()) << value;
    EXPECT_TRUE(words_of({"-Wl,--exclude-libs=" + value}).hides_runtime()) << value;
    EXPECT_TRUE(words_of({"-Wl,-exclude-libs", "-Wl," + value}).hides_runtime()) << value;
    EXPECT_TRUE(words_of({"-Xlinker", "--exclude-libs", "-Xlinker", value}).hides_runtime())
        << value;
  }
  EXPECT_FALSE(words_of({"-Wl,--exclude-libs,libgcc.a"}).hides_runtime());
  EXPECT_FALSE(words_of({"-Wl,exclude-libs,ALL"}).hides_runtime()) << "a file";
  EXPECT_FALSE(words_of({"-Wl,--exclude-libs"}).hides_runtime()) << "without its value";
  EXPECT_FALSE(words_of({"--exclude-libs", "ALL"}).hides_runtime()) << "not for the linker";
}

TEST(LinkerWords, VersionScriptsThatHideTheRuntime) {
  TemporaryFolder folder;
  const std::string script = folder.in("v.map");
  auto hides = [&](const char *text) {
    std::ofstream(script) << text;
    return words_of({"-Wl,--version-script=" + script}).hides_runtime();
  };
  EXPECT_TRUE(hides("{ global: main; local: *; };"));
  EXPECT_TRUE(hides("{ local : *; };"));
  EXPECT_FALSE(hides("{ global: *; localtime_hook; };"));
  EXPECT_FALSE(hides("{ global: *; /* no local: here */ }; # nor local: here"));
  EXPECT_FALSE(words_of({"-Wl,--version-script=" + folder.in("none.map")}).hides_runtime());
}

} // namespace
} // namespace assay::compiler
