// Code is decoded where samples miss it. The file is this test's own, the misses are written by hand.
#include "values/code_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// Over four pages of published code: its begin, a jump to the third, and the second that only falls
// through from the first.
asm(R"(
.text
.p2align 12
.type assay_test_walk, @function
assay_test_walk:
  test %rdi, %rdi
  je assay_test_walk_third
  .fill 1100, 1, 0x90
assay_test_walk_second:
  nop
  .fill 1000, 1, 0x90
assay_test_walk_third:
  xor %eax, %eax
  ret
.size assay_test_walk, . - assay_test_walk
)");
extern "C" const char assay_test_walk[], assay_test_walk_second[], assay_test_walk_third[];

namespace {

using values::CodeCache;

class CodeCacheTest : public testing::Test {
protected:
  // As the kernel tells it.
  static assay_miss miss_at(const char *where) {
    const auto address = reinterpret_cast<uint64_t>(where);
    assay_miss miss = {};
    miss.kind = ASSAY_MESSAGE_MISS;
    miss.pid = miss.tid = static_cast<uint32_t>(getpid());
    miss.address = address;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin, end, offset, inode;
      unsigned major, minor;
      char access[8];
      if (sscanf(line.c_str(), "%lx-%lx %7s %lx %x:%x %lu", &begin, &end, access, &offset, &major,
                 &minor, &inode) == 7 &&
          address >= begin && address < end) {
        miss.page = (address - begin + offset) & ~uint64_t{ASSAY_CODE_PAGE_BYTES - 1};
        miss.file = inode;
      }
    }
    EXPECT_NE(miss.file, 0u);
    return miss;
  }
  uint32_t where_at(const char *where) {
    return code_.where_at(static_cast<uint32_t>(getpid()), reinterpret_cast<uint64_t>(where));
  }

  std::vector<assay_code_page> pages_{8};
  std::vector<assay_uop> entries_{1 << 14};
  CodeCache code_{pages_, entries_, values::kAllKinds};
};

TEST_F(CodeCacheTest, AnAddressHasAPlaceOnceItsPageIsThere) {
  EXPECT_EQ(where_at(assay_test_walk), 0u);
  const CodeCache::Answer answer = code_.fill(miss_at(assay_test_walk));
  EXPECT_EQ(answer.filled, CodeCache::Filled::added);
  EXPECT_TRUE(answer.is_new_page);
  EXPECT_EQ(where_at(assay_test_walk), assay_place_in_page(answer.page, 0));
  // In the same page, whether it is decoded or not.
  EXPECT_EQ(where_at(assay_test_walk + 17), assay_place_in_page(answer.page, 17));
  EXPECT_EQ(where_at(assay_test_walk_third), 0u);
  const auto place = code_.place(where_at(assay_test_walk + 17));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, code_.place(where_at(assay_test_walk))->offset + 17);
  EXPECT_EQ(code_.bytes(where_at(assay_test_walk)).size(), 3u);
}

// Another process that has the file mapped has told of it.
TEST_F(CodeCacheTest, ThePlaceOfAnAddressIsFoundByItsFile) {
  assay_miss miss = miss_at(assay_test_walk);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  miss.pid = static_cast<uint32_t>(child);
  EXPECT_NE(code_.fill(miss).page, 0u);
  EXPECT_NE(where_at(assay_test_walk), 0u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Code is published again by another cache, without a miss: where most samples began, and only there.
TEST_F(CodeCacheTest, WhatSamplesCameToIsKept) {
  const CodeCache::Answer often = code_.fill(miss_at(assay_test_walk_third)),
                          once = code_.fill(miss_at(assay_test_walk_second));
  const uint32_t where = where_at(assay_test_walk_third);
  const auto place = code_.place(where);
  const auto bytes = code_.bytes(where);
  const std::string path = code_.files().at(place->file).path;
  for (int i = 0; i < 3; i++)
    code_.count_sample(where);
  code_.count_sample(where_at(assay_test_walk_second));
  const std::vector<assay_uop> entries(
      entries_.begin() + pages_[often.page].first[assay_offset_in_page(where)], entries_.end());
  values::KeptCode kept = code_.take_kept();
  ASSERT_EQ(kept.pages.size(), 1u);
  ASSERT_NE(once.page, often.page);

  std::ranges::fill(pages_, assay_code_page{});
  std::ranges::fill(entries_, assay_uop{});
  CodeCache next(pages_, entries_, values::kAllKinds);
  std::vector<std::pair<uint64_t, uint32_t>> announced;
  next.publish_again(std::move(kept), [&](const assay_code_key &key, uint32_t page) {
    announced.emplace_back(key.page, page);
  });
  ASSERT_EQ(announced.size(), 1u);
  EXPECT_EQ(announced.front().first, miss_at(assay_test_walk_third).page);
  const uint32_t again = next.where_at(static_cast<uint32_t>(getpid()),
                                       reinterpret_cast<uint64_t>(assay_test_walk_third));
  ASSERT_EQ(assay_page_of(again), announced.front().second);
  EXPECT_EQ(next.place(again)->offset, place->offset);
  EXPECT_EQ(next.files().at(next.place(again)->file).path, path);
  EXPECT_EQ(next.bytes(again), bytes);
  const uint32_t first = pages_[assay_page_of(again)].first[assay_offset_in_page(again)];
  ASSERT_NE(first, 0u);
  const auto *head = reinterpret_cast<const assay_code_head *>(&entries_[first]);
  EXPECT_EQ(std::memcmp(&entries_[first], entries.data(), (1u + head->uops) * sizeof(assay_uop)),
            0);
  EXPECT_EQ(next.fill(miss_at(assay_test_walk_third)).filled, CodeCache::Filled::is_there);
  EXPECT_EQ(next.fill(miss_at(assay_test_walk_second)).filled, CodeCache::Filled::added);
}

TEST_F(CodeCacheTest, TheRestOfAFunctionIsAhead) {
  const CodeCache::Answer first = code_.fill(miss_at(assay_test_walk));
  // The second page by falling into it, the third by the jump.
  ASSERT_EQ(first.ahead.size(), 2u);
  for (const assay_miss &next : first.ahead) {
    EXPECT_EQ(next.file, miss_at(assay_test_walk).file);
    EXPECT_EQ(next.page - miss_at(assay_test_walk).page,
              (next.address - reinterpret_cast<uint64_t>(assay_test_walk)) &
                  ~uint64_t{ASSAY_CODE_PAGE_BYTES - 1});
    EXPECT_TRUE(code_.fill(next).is_new_page);
  }
  EXPECT_NE(where_at(assay_test_walk_second), 0u);
  EXPECT_NE(where_at(assay_test_walk_third), 0u);
  EXPECT_TRUE(code_.fill(miss_at(assay_test_walk)).ahead.empty());
}

TEST_F(CodeCacheTest, AFunctionIsDecodedFromItsBeginAlso) {
  const CodeCache::Answer third = code_.fill(miss_at(assay_test_walk_third));
  ASSERT_EQ(third.ahead.size(), 1u);
  EXPECT_EQ(third.ahead.front().address, reinterpret_cast<uint64_t>(assay_test_walk));
}

TEST_F(CodeCacheTest, WhatLiesBehindAnInstructionMayBeInTheNextPage) {
  code_.fill(miss_at(assay_test_walk));
  const uint32_t last = where_at(assay_test_walk + ASSAY_CODE_PAGE_BYTES - 1);
  EXPECT_EQ(code_.shape(last).length, 1u);
  EXPECT_EQ(code_.behind(last, 1), 0u);
  code_.fill(miss_at(assay_test_walk + ASSAY_CODE_PAGE_BYTES));
  EXPECT_EQ(code_.behind(last, 1), where_at(assay_test_walk + ASSAY_CODE_PAGE_BYTES));
  EXPECT_NE(code_.behind(last, 1), 0u);
}

// It is not interpreted, but time that goes there is known.
TEST_F(CodeCacheTest, AnAddressHasAPlaceWithoutRoomToDecodeIt) {
  std::vector<assay_code_page> one(1); // page 0 is not used
  CodeCache full(one, entries_, values::kAllKinds);
  const CodeCache::Answer answer = full.fill(miss_at(assay_test_walk));
  EXPECT_EQ(answer.filled, CodeCache::Filled::no_room);
  EXPECT_FALSE(answer.is_new_page);
  const uint32_t where =
      full.where_at(static_cast<uint32_t>(getpid()), reinterpret_cast<uint64_t>(assay_test_walk));
  const auto place = full.place(where);
  ASSERT_TRUE(place);
  code_.fill(miss_at(assay_test_walk));
  EXPECT_EQ(place->offset, code_.place(where_at(assay_test_walk))->offset);
  EXPECT_EQ(full.bytes(where), code_.bytes(where_at(assay_test_walk)));
  EXPECT_EQ(full.shape(where).length, 0u);
  EXPECT_GE(full.fullness(), 1);
}

} // namespace
