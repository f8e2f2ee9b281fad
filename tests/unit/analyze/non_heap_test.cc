// Blocks get the names of the globals in them, in a program that the test compiles itself; nothing
// is counted twice or lost.

#include "analyze/non_heap.h"

#include "analyze/heap.h"
#include "tests/unit/profile/profile_builder.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace {

// Line 2 declares the table. Five small ones share one block; an array ends in a block with the
// last of them.
const char *const kSource = R"(namespace app {
alignas(64) int table[48];
}
alignas(64) char array[100];
extern "C" const char constant[4] = "abc";
int main() { return app::table[3] + array[5]; }
)";

class Globals : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    std::string source = folder_->in("outside_program.cc");
    program_ = folder_->in("outside_program");
    std::ofstream(source) << kSource;
    std::string assembly = folder_->in("outside_small.s");
    std::ofstream(assembly) << ".data\n.p2align 6\n.skip 4\n"
                               ".globl one\n.type one,@object\n.size one,4\none: .long 1\n"
                               ".globl two\n.type two,@object\n.size two,4\ntwo: .long 1\n"
                               ".globl three\n.type three,@object\n.size three,4\nthree: .long 1\n"
                               ".globl four\n.type four,@object\n.size four,100\nfour: .zero 100\n"
                               ".p2align 6\n.skip 64\n"
                               ".globl aligned\n.type aligned,@object\n.size aligned,100\n"
                               "aligned: .zero 100\n"
                               ".globl behind\n.type behind,@object\n.size behind,4\n"
                               "behind: .long 1\n.p2align 6\n.skip 64\n"
                               ".section .note.GNU-stack,\"\",@progbits\n";
    std::string command =
        "clang++-22 -g -O1 -Wl,--build-id -o " + program_ + " " + source + " " + assembly;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  static void TearDownTestSuite() { folder_.reset(); }

  Globals() : data_(image::data(program_)) {}
  const image::DataSymbol &symbol(const std::string &linkage_name) {
    for (const auto &each : data_.symbols)
      if (each.linkage_name == linkage_name)
        return each;
    throw std::runtime_error("no symbol " + linkage_name);
  }
  void touch(uint64_t address, uint64_t reads, uint64_t writes) {
    blocks_.push_back({ASSAY_NON_HEAP_GLOBALS, {}, 0, address / 64 * 64, reads, writes});
  }
  std::vector<analyze::GlobalRow> rows() {
    profile::Assembler assembler;
    auto module = assembler.module(program_, *image::read_build_id(program_), true);
    for (profile::NonHeapBlock &block : blocks_) {
      block.module = module;
      profile::add(assembler, block);
    }
    blocks_.clear();
    profile::Profile profile = assembler.finish();
    image::Symbols symbols = image::open(analyze::module_files(profile));
    return analyze::globals(profile, symbols, 64);
  }

  static std::unique_ptr<TemporaryFolder> folder_;
  static std::string program_;
  std::vector<profile::NonHeapBlock> blocks_;
  image::Data data_;
};
std::unique_ptr<TemporaryFolder> Globals::folder_;
std::string Globals::program_;

TEST_F(Globals, AGlobalHasItsNameItsPlaceAndItsBlocks) {
  touch(symbol("_ZN3app5tableE").address, 10, 2);
  touch(symbol("_ZN3app5tableE").address + 128, 1, 0);
  auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "app::table");
  EXPECT_EQ(found[0].module, program_);
  EXPECT_EQ(found[0].size, 192u);
  EXPECT_EQ(found[0].touched_bytes, 128u);
  EXPECT_EQ(found[0].reads, 11u);
  EXPECT_EQ(found[0].writes, 2u);
  EXPECT_EQ(image::base_name(found[0].file), "outside_program.cc");
  EXPECT_EQ(found[0].line, 2u);
}

TEST_F(Globals, ASharedBlockIsNamedForAllInIt) {
  touch(symbol("one").address, 1, 0);
  touch(symbol("four").address + 64, 0, 5); // the rest of `four` is its own
  auto found = rows();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "four");
  EXPECT_EQ(found[0].size, 52u); // 16 bytes before it, 48 of its 100 in the first block
  EXPECT_EQ(found[0].touched_bytes, 52u);
  EXPECT_EQ(found[1].name, "one, two and 2 more");
  EXPECT_EQ(found[1].size, 60u);
  EXPECT_EQ(found[1].reads, 1u);
}

TEST_F(Globals, ASymbolThatBeginsOnABlockHasItToItself) {
  touch(symbol("aligned").address + 64, 1, 2);
  auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "aligned");
  EXPECT_EQ(found[0].size, 100u);
  EXPECT_EQ(found[0].touched_bytes, 36u);
}

TEST_F(Globals, WithoutASymbolTheSectionSaysWhatItIs) {
  const auto &four = symbol("four");
  touch((four.address + four.size + 63) / 64 * 64, 3, 0);
  auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "data of outside_program");
  EXPECT_EQ(found[0].size, 0u);
  EXPECT_EQ(found[0].touched_bytes, 64u);
  auto constants = std::find_if(data_.sections.begin(), data_.sections.end(),
                                [](const auto &section) { return section.constant; });
  ASSERT_NE(constants, data_.sections.end());
  touch(constants->address, 1, 0);
  found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "constants of outside_program");
}

TEST_F(Globals, EveryAccessIsInOneRow) {
  std::mt19937_64 random(1);
  uint64_t low = data_.sections.front().address, high = 0, reads = 0, writes = 0;
  for (const auto &section : data_.sections)
    high = std::max(high, section.address + section.size);
  for (int i = 0; i < 500; i++) {
    uint64_t r = random() % 10, w = random() % 10;
    touch(low + random() % (high - low), r, w);
    reads += r, writes += w;
  }
  for (const analyze::GlobalRow &row : rows()) {
    reads -= row.reads;
    writes -= row.writes;
    if (row.size)
      EXPECT_LE(row.touched_bytes, row.size) << row.name;
  }
  EXPECT_EQ(reads, 0u);
  EXPECT_EQ(writes, 0u);
}

TEST(Stacks, AreSummedByThread) {
  profile::Assembler assembler;
  auto touch = [&](uint32_t thread, uint64_t offset, uint64_t reads) {
    profile::add(assembler, profile::NonHeapBlock{ASSAY_NON_HEAP_STACK, profile::ModuleId(), thread,
                                                  offset, reads, 1});
  };
  touch(1, 64, 5);
  touch(1, 4096, 6);
  touch(7, 128, 1);
  auto rows = analyze::stacks(assembler.finish());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].thread, 1u);
  EXPECT_EQ(rows[0].reads, 11u);
  EXPECT_EQ(rows[0].writes, 2u);
  EXPECT_EQ(rows[0].deepest_bytes, 4096u);
  EXPECT_EQ(rows[1].thread, 7u);
}

} // namespace
