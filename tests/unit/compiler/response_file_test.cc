// Files of arguments are read as clang reads them.
#include "compiler/response_file.h"

#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

namespace assay::compiler {
namespace {

using Words = std::vector<std::string>;

class ResponseFile : public testing::Test {
protected:
  std::string make(const char *name, const std::string &text) const {
    std::ofstream(folder_.in(name)) << text;
    return folder_.in(name);
  }
  TemporaryFolder folder_;
};

TEST_F(ResponseFile, QuotesAndBackslashesHoldWordsTogether) {
  EXPECT_EQ(
      words_of_response_file(make("a", "-O2\n-I\"my folder\" '-DX=\"a\"' a\\ b.c '' \"\\\"\"")),
      (Words{"-O2", "-Imy folder", "-DX=\"a\"", "a b.c", "", "\""}));
  EXPECT_EQ(words_of_response_file(make("empty", " \n\t")), Words());
}

TEST_F(ResponseFile, FilesMayNameFiles) {
  const std::string inner = make("inner", "-g -O1");
  EXPECT_EQ(words_of_response_file(make("outer", "a.c @" + inner + " b.c")),
            (Words{"a.c", "-g", "-O1", "b.c"}));
  EXPECT_EQ(words_of_response_file(make("outer", "@ @" + folder_.in("none"))),
            (Words{"@", "@" + folder_.in("none")}))
      << "no file of that name";
  EXPECT_EQ(words_of_response_file(folder_.in("none")), Words());
}

TEST_F(ResponseFile, MayNotContainItself) {
  const std::string a = make("a", "@" + folder_.in("b"));
  make("b", "@" + a);
  EXPECT_THROW(words_of_response_file(a), std::runtime_error);
}

TEST(ResponseFiles, AreNamedWithAnAt) {
  EXPECT_TRUE(names_response_file("@a"));
  EXPECT_FALSE(names_response_file("@"));
  EXPECT_FALSE(names_response_file("a@"));
}

} // namespace
} // namespace assay::compiler
