// Files of every version of the format are kept in tests/format/vN/ and
// read: what they said then, they say now.

#include "abi/fields.h"
#include "abi/tools.h"
#include "profile/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace {

profile::Profile read_old(const std::string &file) {
  return profile::read({std::string(ASSAY_SOURCE_DIR "/tests/format/") + file});
}

// The context that makes so many objects.
const profile::HeapContext &making(const profile::Profile &profile, uint64_t objects) {
  auto found = std::find_if(profile.heap.begin(), profile.heap.end(), [&](const auto &context) {
    return context.freed.alloc_count + context.live.alloc_count == objects;
  });
  if (found == profile.heap.end())
    throw std::runtime_error("no context makes " + std::to_string(objects) + " objects");
  return *found;
}

TEST(OldFormat, Version1) {
  profile::Profile p = read_old("v1/list.assay");
  EXPECT_EQ(p.losses.size(), 0u);
  ASSERT_EQ(p.processes.size(), 1u);
  EXPECT_EQ(p.processes[0].executable, "/srv/app/list");
  EXPECT_EQ(p.processes[0].arguments, std::vector<std::string>{"./list"});
  ASSERT_EQ(p.processes[0].ends.size(), 1u);
  EXPECT_EQ(p.processes[0].ends[0].status, 0u);
  EXPECT_EQ(p.heap.size(), 2u);

  const profile::HeapContext &nodes = making(p, 100);
  EXPECT_EQ(nodes.freed.alloc_count, 60u);
  EXPECT_EQ(nodes.live.alloc_count, 40u);
  EXPECT_EQ(nodes.freed.size_total, 60u * 16);
  EXPECT_EQ(nodes.freed.writes, 60u * 2);
  EXPECT_EQ(nodes.freed.reads, 60u);
  EXPECT_EQ(nodes.live.writes, 40u * 2);
  EXPECT_EQ(nodes.live.reads, 1u);
  EXPECT_EQ(nodes.peak_bytes, 1600u);
  ASSERT_TRUE(nodes.type.known());
  EXPECT_EQ(p.types[nodes.type.v].name, "node");
  EXPECT_EQ(p.types[nodes.type.v].size, 16u);
  const auto &frame = p.stack(nodes.stack).frames.at(0);
  EXPECT_EQ(p.modules.at(frame.module.v).path, "/srv/app/list");
  EXPECT_TRUE(p.modules.at(frame.module.v).instrumented);

  const profile::HeapContext &buffer = making(p, 1);
  EXPECT_EQ(buffer.freed.size_total, 1000u);
  EXPECT_EQ(buffer.freed.realloc_count, 1u);
  EXPECT_EQ(buffer.freed.writes, 13u); // memset of 100 bytes: 32, 64 and 4 of three blocks
}

TEST(OldFormat, Version2) {
  profile::Profile p = read_old("v2/said.assay");
  EXPECT_EQ(p.losses.size(), 0u);
  ASSERT_EQ(p.processes.size(), 1u);
  ASSERT_EQ(p.processes[0].marks.size(), 1u);
  EXPECT_EQ(p.processes[0].marks[0].name, "work");
  EXPECT_TRUE(p.processes[0].reset_us);
  ASSERT_EQ(p.events.size(), 1u);
  EXPECT_EQ(p.events[0].name, "turn");
  EXPECT_EQ(p.events[0].count, 10u);
  EXPECT_EQ(p.events[0].weight, 30u);
  EXPECT_EQ(p.heap.size(), 3u); // the 5,000 bytes were before the reset
  for (const profile::HeapContext &context : p.heap)
    switch (context.origin.kind) {
    case ASSAY_ORIGIN_POOL:
      EXPECT_EQ(context.origin.name, "nodes");
      EXPECT_EQ(context.freed.alloc_count, 10u);
      EXPECT_EQ(context.freed.writes, 10u);
      break;
    case ASSAY_ORIGIN_MMAP:
      EXPECT_EQ(context.live.size_total, 16384u);
      EXPECT_EQ(context.live.writes, 1u);
      break;
    default:
      EXPECT_EQ(context.freed.alloc_count, 10u);
      ASSERT_EQ(context.freed_at.size(), 1u);
      EXPECT_EQ(context.freed_at[0].count, 10u);
    }
  uint64_t reads = 0, writes = 0; // of `hits`; those of the arena are its objects'
  for (const profile::NonHeapBlock &block : p.non_heap)
    reads += block.reads, writes += block.writes;
  EXPECT_EQ(p.non_heap.size(), 1u);
  EXPECT_EQ(reads, 10u);
  EXPECT_EQ(writes, 10u);
}

TEST(OldFormat, Version3) {
  profile::Profile p = read_old("v3/both.assay");
  ASSERT_EQ(p.processes.size(), 1u);
  auto program = std::find_if(p.modules.begin(), p.modules.end(),
                              [](const profile::Module &m) { return m.path == "/srv/app/both"; });
  ASSERT_NE(program, p.modules.end());
  ASSERT_EQ(program->units.size(), 1u);
  EXPECT_EQ(program->units[0].source, "both.c");
  EXPECT_EQ(program->units[0].tools, uint64_t{ASSAY_TOOL_heap | ASSAY_TOOL_workingset});
  ASSERT_EQ(program->units[0].modes.size(), 2u);
  EXPECT_EQ(program->units[0].modes[0], uint32_t{ASSAY_COUNTERS_GLOBALS});
  EXPECT_EQ(program->units[0].modes[1], 0u);
  const profile::HeapContext &buffer = making(p, 1);
  EXPECT_EQ(buffer.freed.writes, 100u);
  uint64_t globals = 0;
  for (const profile::NonHeapBlock &block : p.non_heap)
    globals += block.writes;
  EXPECT_EQ(globals, 1024u);
  const profile::WorkingSet &set = *p.processes[0].workingset;
  ASSERT_EQ(set.snapshots.size(), 3u);
  EXPECT_EQ(set.snapshots[0].name, "table");
  EXPECT_EQ(set.snapshots[1].name, "buffer");
  std::vector<uint64_t> lines(3);
  for (const profile::TouchedLines &touched : set.lines)
    profile::each_group(touched, [&](uint64_t, const uint64_t *planes) {
      for (uint32_t i = 0; i < touched.count; i++)
        lines[touched.first + i] += uint64_t(std::popcount(planes[i]));
    });
  EXPECT_GE(lines[0], 1024u);
  EXPECT_LT(lines[0], 1100u);
  EXPECT_GE(lines[1], 100u);
  EXPECT_LT(lines[1], 150u);
}

// The same as `assay merge` wrote it.
TEST(OldFormat, Version4) {
  EXPECT_TRUE(read_old("v4/both.assay") == read_old("v3/both.assay"));
}

// Its windows count alike, and nobody knows how many rounds there were.
TEST(OldFormat, Version4HasNoRoundsOfWindows) {
  profile::Profile p = read_old("v4/fields.assay");
  ASSERT_EQ(p.fields.records.size(), 1u);
  EXPECT_EQ(p.fields.records[0].name, "item");
  uint64_t reads = 0, windows = 0;
  for (const profile::FieldUse &use : p.fields.uses)
    reads += use.reads;
  for (const profile::FieldSet &set : p.fields.sets)
    windows += set.kind == ASSAY_SET_WINDOW ? set.count : 0;
  EXPECT_EQ(reads, 300u * 20000 + 20000);
  EXPECT_GT(windows, 1000u);
  EXPECT_TRUE(p.fields.sampling.empty());
}

} // namespace
