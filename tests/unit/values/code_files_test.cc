// Which files stay open from one recording to the next. The files are copies of this test, mapped here.
#include "tests/unit/temporary_folder.h"
#include "values/code_files.h"
#include "values/code_key.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using values::CodeFiles;

class CodeFilesTest : public testing::Test {
protected:
  // A file that is mapped as code, and a miss in it.
  assay_miss mapped(const std::string &name) {
    const fs::path path = folder_.in(name);
    fs::copy_file("/proc/self/exe", path);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    fstat(file, &status);
    void *code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    close(file);
    EXPECT_NE(code, MAP_FAILED);
    assay_miss miss = {};
    miss.kind = ASSAY_MESSAGE_MISS;
    miss.pid = miss.tid = static_cast<uint32_t>(getpid());
    miss.address = reinterpret_cast<uint64_t>(code);
    miss.file = status.st_ino;
    EXPECT_NE(files_.open(miss, maps_), nullptr);
    return miss;
  }
  bool is_open(const assay_miss &miss) { return files_.use(values::key_of(miss)); }

  TemporaryFolder folder_;
  values::ProcessMaps maps_;
  CodeFiles files_;
};

TEST_F(CodeFilesTest, FilesStayOpenAndGetNewNumbers) {
  const assay_miss first = mapped("first"), second = mapped("second");
  EXPECT_EQ(files_.all().size(), 2u);
  files_.begin_anew(9);
  EXPECT_TRUE(files_.all().empty());
  ASSERT_TRUE(is_open(second));
  ASSERT_EQ(files_.all().size(), 1u);
  EXPECT_EQ(files_.use(values::key_of(second))->index, 0u);
  EXPECT_EQ(files_.all().front().path, folder_.in("second"));
  ASSERT_TRUE(is_open(first));
  EXPECT_EQ(files_.use(values::key_of(first))->index, 1u);
}

TEST_F(CodeFilesTest, WhatNobodyUsedIsClosed) {
  const assay_miss first = mapped("first"), second = mapped("second");
  files_.begin_anew(9);
  EXPECT_TRUE(is_open(first));
  files_.begin_anew(9);
  EXPECT_TRUE(is_open(first));
  EXPECT_FALSE(is_open(second));
}

TEST_F(CodeFilesTest, WhatIsNeededStaysThenWhatWasUsedMost) {
  const assay_miss needed = mapped("needed"), often = mapped("often"), once = mapped("once");
  files_.use(values::key_of(needed))->is_needed = true;
  for (int i = 0; i < 5; i++)
    EXPECT_TRUE(is_open(often));
  files_.begin_anew(2);
  EXPECT_TRUE(is_open(needed));
  EXPECT_TRUE(is_open(often));
  EXPECT_FALSE(is_open(once));
}

// Its inode stays the same: what was read of it is of another program.
TEST_F(CodeFilesTest, AFileThatWasWrittenToIsClosed) {
  const assay_miss rewritten = mapped("rewritten"), replaced = mapped("replaced"),
                   same = mapped("same");
  std::ofstream(folder_.in("rewritten"), std::ios::app) << 'x';
  fs::rename(folder_.in("replaced"), folder_.in("elsewhere"));
  files_.begin_anew(9);
  EXPECT_FALSE(is_open(rewritten));
  EXPECT_FALSE(is_open(replaced));
  EXPECT_TRUE(is_open(same));
}

} // namespace
