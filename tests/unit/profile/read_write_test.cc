// What the reader makes of the streams that the runtime writes: deltas, walks, peaks, several
// processes, types told apart by module.

#include "abi/tools.h"
#include "profile/container.h"
#include "profile/merge.h"
#include "profile/profile.h"

#include "abi/sites.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using profile::ContainerWriter;
using profile::Profile;

namespace {

class Stream {
public:
  Stream() : out(1, 2) {}

  void program(uint64_t pid = 1) {
    std::string path[] = {"/bin/app", "app"};
    out.record(ASSAY_RECORD_Program, AssayProgram{pid, 0, pid * 1000, 1, 0},
               profile::string_tail(path));
  }
  void module(uint32_t number, const std::string &path, uint8_t build_id = 0) {
    AssayModule m = {};
    m.module = number;
    m.build_id_size = build_id ? 20 : 0;
    m.build_id0 = build_id;
    out.record(ASSAY_RECORD_Module, m, profile::string_tail(std::span(&path, 1)));
  }
  void context(uint32_t number, std::vector<uint64_t> frames, uint32_t type = 0) {
    out.record(ASSAY_RECORD_Context, AssayContext{number, type, 0, 0},
               std::as_bytes(std::span(frames)));
  }
  void type(uint32_t module_number, uint64_t hash, const std::string &name) {
    site(module_number, ASSAY_SITE_TYPE, hash, 8, name);
  }
  void site(uint32_t module_number, uint32_t kind, uint64_t hash, uint64_t size,
            const std::string &name) {
    size_t padded = (name.size() + 7) / 8 * 8;
    AssaySite site = {kind,
                      static_cast<uint32_t>(sizeof(AssaySite) + sizeof(AssaySiteType) + padded)};
    AssaySiteType entry = {hash, size, static_cast<uint32_t>(name.size()), 0};
    std::vector<std::byte> tail(site.size);
    std::memcpy(tail.data(), &site, sizeof(site));
    std::memcpy(tail.data() + sizeof(site), &entry, sizeof(entry));
    std::memcpy(tail.data() + sizeof(site) + sizeof(entry), name.data(), name.size());
    out.record(ASSAY_RECORD_Sites, AssaySites{module_number}, tail);
  }
  static AssayHib object(uint64_t alloc_us, uint64_t free_us, uint32_t cpu = 0) {
    AssayObject o = {};
    o.size = 64;
    o.alloc_us = alloc_us;
    o.free_us = free_us;
    o.alloc_cpu = o.free_cpu = cpu;
    o.blocks_spanned = 1;
    return assay_hib_of(&o);
  }
  void freed(uint64_t number, const AssayHib &hib) {
    out.record(ASSAY_RECORD_HeapFreed, AssayHeapFreed{number, hib, {}});
  }
  void live(uint64_t walk, uint64_t number, const AssayHib &hib) {
    out.record(ASSAY_RECORD_HeapLive, AssayHeapLive{walk, number, hib, {}});
  }
  void walk(uint64_t number) {
    out.record(ASSAY_RECORD_HeapWalk, AssayHeapWalk{number, 10, 1, 64});
  }
  template <class Record> void named(uint32_t kind, const Record &fixed, const std::string &name) {
    out.record(kind, fixed, std::as_bytes(std::span(name)));
  }
  void non_heap(uint64_t walk, uint32_t kind, uint32_t owner,
                std::vector<AssayBlockCounts> blocks) {
    out.record(ASSAY_RECORD_NonHeap, AssayNonHeap{walk, kind, owner},
               std::as_bytes(std::span(blocks)));
  }
  void end() { out.record(ASSAY_RECORD_End, AssayEnd{ASSAY_END_EXIT, 0, 100}); }
  Profile read() { return profile::read_bytes(out.bytes(), "stream.assay"); }

  ContainerWriter out;
};

TEST(Read, DeltasOfOneProcessBridge) {
  Stream s;
  s.program();
  s.context(1, {0x10});
  s.freed(1, Stream::object(0, 10));
  s.freed(1, Stream::object(5, 15)); // alive together with the one before, same cpu
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.heap.size(), 1u);
  EXPECT_EQ(p.heap[0].freed.alloc_count, 2u);
  EXPECT_EQ(p.heap[0].freed.lifetime_overlaps, 1u);
  EXPECT_EQ(p.heap[0].freed.same_alloc_cpu, 1u);
  EXPECT_TRUE(p.losses.empty());
}

TEST(Read, ProcessesDoNotBridge) {
  Stream s;
  s.program(1);
  s.context(1, {0x10});
  s.freed(1, Stream::object(0, 10));
  s.end();
  s.program(2);
  s.freed(1, Stream::object(5, 15));
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.heap.size(), 1u);
  EXPECT_EQ(p.heap[0].freed.alloc_count, 2u);
  EXPECT_EQ(p.heap[0].freed.lifetime_overlaps, 0u);
  EXPECT_EQ(p.processes.size(), 2u);
}

TEST(Read, OnlyTheLastCompleteWalkCounts) {
  Stream s;
  s.program();
  s.context(1, {0x10});
  s.context(2, {0x20});
  s.live(1, 1, Stream::object(0, 10));
  s.live(1, 2, Stream::object(0, 10));
  s.walk(1);
  s.live(2, 1, Stream::object(0, 20));
  s.walk(2);
  s.live(3, 2, Stream::object(0, 30)); // cut short
  Profile p = s.read();
  ASSERT_EQ(p.heap.size(), 1u);
  EXPECT_EQ(p.stack(p.heap[0].stack).frames[0].offset, 0x10u);
  EXPECT_EQ(p.heap[0].live.alloc_count, 1u);
  EXPECT_EQ(p.heap[0].live.lifetime_us_max, 20u);
  EXPECT_EQ(p.losses.at(ASSAY_LOSS_killed), 1u);
}

TEST(Read, WhatStillRunsWasNotKilled) {
  TemporaryFolder folder;
  std::string path = folder.in("app.assay"), page = folder.in("app.live");
  profile::Process process;
  process.pid = static_cast<uint64_t>(getpid());
  process.executable = std::filesystem::read_symlink("/proc/self/exe");
  profile::Assembler assembler;
  assembler.profile().processes.push_back(process);
  profile::write(assembler.finish(), path);
  EXPECT_EQ(profile::read({path}).losses.at(ASSAY_LOSS_killed), 1u); // no control page

  std::ofstream(page) << "page";
  Profile running = profile::read({path});
  EXPECT_EQ(running.losses.count(ASSAY_LOSS_killed), 0u);
  ASSERT_EQ(running.notes.size(), 1u);
  EXPECT_NE(running.notes[0].find("still running"), std::string::npos);

  process.executable = "/another/program"; // which had our pid before
  profile::Assembler other;
  other.profile().processes.push_back(process);
  profile::write(other.finish(), path);
  EXPECT_EQ(profile::read({path}).losses.at(ASSAY_LOSS_killed), 1u);
}

TEST(Read, AnEmptyWalkReplacesAnEarlierOne) {
  Stream s;
  s.program();
  s.context(1, {0x10});
  s.live(1, 1, Stream::object(0, 10));
  s.walk(1);
  s.walk(2);
  s.end();
  EXPECT_TRUE(s.read().heap.empty());
}

TEST(Read, LaterPeaksReplaceEarlierOnes) {
  Stream s;
  s.program();
  s.context(1, {0x10});
  s.out.record(ASSAY_RECORD_HeapPeak, AssayHeapPeak{1, 100, 90});
  s.out.record(ASSAY_RECORD_HeapPeak, AssayHeapPeak{1, 200, 50});
  s.end();
  Profile p = s.read();
  EXPECT_EQ(p.heap.at(0).peak_bytes, 200u);
  EXPECT_EQ(p.heap.at(0).at_peak_bytes, 50u);
}

TEST(Read, ASecondLoadOfAModuleIsTheSameModule) {
  Stream s;
  s.program();
  s.module(1, "/lib/a.so", 7);
  s.out.record(ASSAY_RECORD_ModuleUnload, AssayModuleUnload{1, 50});
  s.module(2, "/lib/a.so", 7);
  s.context(1, {assay_frame(1, 0x10)});
  s.context(2, {assay_frame(2, 0x10)});
  s.freed(1, Stream::object(0, 1));
  s.freed(2, Stream::object(0, 1));
  s.end();
  Profile p = s.read();
  EXPECT_EQ(p.modules.size(), 1u);
  ASSERT_EQ(p.heap.size(), 1u);
  EXPECT_EQ(p.heap[0].freed.alloc_count, 2u);
  ASSERT_EQ(p.processes[0].mappings.size(), 2u);
}

TEST(Read, TypesWithOneShortIdAreToldApartByModule) {
  Stream s;
  s.program();
  s.module(1, "/bin/app", 1);
  s.module(2, "/lib/b.so", 2);
  s.type(1, 0x100000005, "Apple");
  s.type(2, 0x200000005, "Pear");
  s.context(1, {assay_frame(2, 0x10)}, 5);
  s.context(2, {assay_frame(1, 0x10)}, 5);
  s.freed(1, Stream::object(0, 1));
  s.freed(2, Stream::object(0, 1));
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.heap.size(), 2u);
  for (const auto &context : p.heap) {
    const auto &module = p.modules[p.stack(context.stack).frames[0].module.v];
    EXPECT_EQ(p.types[context.type.v].name, module.path == "/bin/app" ? "Apple" : "Pear");
  }
}

TEST(Read, AResetDropsWhatWasMeasuredBefore) {
  Stream s;
  s.program();
  s.module(1, "/bin/app", 1);
  s.type(1, 0x100000005, "Apple");
  s.context(1, {assay_frame(1, 0x10)}, 5);
  s.context(2, {0x20});
  auto measure = [&](uint64_t walk) {
    s.freed(1, Stream::object(0, 10));
    s.live(walk, 1, Stream::object(0, 10));
    s.non_heap(walk, ASSAY_NON_HEAP_GLOBALS, 1, {{64, 3, 4}});
    s.walk(walk);
    s.out.record(ASSAY_RECORD_HeapPeak, AssayHeapPeak{1, 100 * walk, 90 * walk});
    s.out.record(ASSAY_RECORD_HeapFreeContext, AssayHeapFreeContext{1, 2, 3, 30});
    s.out.record(ASSAY_RECORD_HeapTimeline, AssayHeapTimeline{walk, 1, 64, 64});
    s.named(ASSAY_RECORD_Event, AssayEvent{2, 1, 10}, "request");
  };
  measure(2);
  s.live(3, 2, Stream::object(0, 10)); // a walk that the reset cuts short
  s.named(ASSAY_RECORD_Mark, AssayMark{40}, "warm");
  s.out.record(ASSAY_RECORD_Reset, AssayReset{50});
  Profile before = s.read();
  EXPECT_TRUE(before.heap.empty());
  EXPECT_TRUE(before.events.empty());
  EXPECT_TRUE(before.non_heap.empty());
  EXPECT_TRUE(before.processes[0].timeline.empty());
  EXPECT_FALSE(before.processes[0].walk.has_value());
  EXPECT_EQ(before.modules.size(), 1u);
  EXPECT_EQ(before.types.size(), 1u);

  measure(1);
  s.end();
  Profile p = s.read();
  EXPECT_EQ(p.processes[0].reset_us, 50u);
  EXPECT_EQ(p.processes[0].marks, (std::vector<profile::Mark>{{40, "warm"}}));
  EXPECT_EQ(p.processes[0].timeline.size(), 1u);
  ASSERT_EQ(p.heap.size(), 1u);
  EXPECT_EQ(p.types.at(p.heap[0].type.v).name, "Apple");
  EXPECT_EQ(p.heap[0].freed.alloc_count, 1u);
  EXPECT_EQ(p.heap[0].live.alloc_count, 1u);
  EXPECT_EQ(p.heap[0].peak_bytes, 100u);
  EXPECT_EQ(p.heap[0].freed_at.at(0).count, 3u);
  EXPECT_EQ(p.events.at(0).weight, 10u);
  EXPECT_EQ(p.non_heap.at(0).reads, 3u);
  EXPECT_TRUE(p.losses.empty());
}

TEST(Read, AResetIsOfItsOwnProcess) {
  Stream s;
  s.context(1, {0x10});
  s.program(1);
  s.freed(1, Stream::object(0, 10));
  s.end();
  s.program(2);
  s.freed(1, Stream::object(0, 10));
  s.out.record(ASSAY_RECORD_Reset, AssayReset{50});
  s.end();
  EXPECT_EQ(s.read().heap.at(0).freed.alloc_count, 1u);
}

TEST(Read, EventsAddUpByPlaceAndName) {
  Stream s;
  s.program();
  s.context(1, {0x10});
  s.context(2, {0x20});
  s.named(ASSAY_RECORD_Event, AssayEvent{1, 2, 20}, "request");
  s.named(ASSAY_RECORD_Event, AssayEvent{1, 1, 5}, "request");
  s.named(ASSAY_RECORD_Event, AssayEvent{1, 1, 7}, "miss");
  s.named(ASSAY_RECORD_Event, AssayEvent{2, 1, 9}, "request");
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.events.size(), 3u);
  EXPECT_EQ(p.events[0].name, "miss");
  EXPECT_EQ(p.events[1].count, 3u);
  EXPECT_EQ(p.events[1].weight, 25u);
  EXPECT_EQ(p.stack(p.events[2].stack).frames.at(0).offset, 0x20u);
}

TEST(Read, ContextsKnowTheirOrigin) {
  Stream s;
  s.program();
  for (uint32_t context = 1; context <= 4; context++) {
    uint64_t frame = 0x10;
    s.out.record(ASSAY_RECORD_Context, AssayContext{context, 0, 0, context - 1},
                 std::as_bytes(std::span(&frame, 1)));
    s.freed(context, Stream::object(0, 10));
  }
  s.named(ASSAY_RECORD_Origin, AssayOrigin{1, ASSAY_ORIGIN_POOL}, "nodes");
  s.named(ASSAY_RECORD_Origin, AssayOrigin{2, ASSAY_ORIGIN_MMAP}, "");
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.heap.size(), 3u); // the fourth one's origin is missing: it counts as malloc's
  EXPECT_EQ(p.heap[0].origin, profile::Origin());
  EXPECT_EQ(p.heap[0].freed.alloc_count, 2u);
  EXPECT_EQ(p.heap[1].origin, (profile::Origin{ASSAY_ORIGIN_POOL, "nodes"}));
  EXPECT_EQ(p.heap[2].origin, (profile::Origin{ASSAY_ORIGIN_MMAP, ""}));
  EXPECT_EQ(p.losses.at(ASSAY_LOSS_bad_record), 1u);
}

TEST(Read, BlocksOutsideTheHeapAreOfTheLastCompleteWalk) {
  Stream s;
  s.program();
  s.module(1, "/bin/app", 1);
  s.non_heap(1, ASSAY_NON_HEAP_GLOBALS, 1, {{0, 1, 1}, {64, 2, 2}});
  s.walk(1);
  s.non_heap(2, ASSAY_NON_HEAP_GLOBALS, 1, {{64, 5, 6}});
  s.non_heap(2, ASSAY_NON_HEAP_STACK, 1, {{128, 7, 8}});
  s.non_heap(2, ASSAY_NON_HEAP_STACK, 1, {{128, 1, 1}}); // one owner may take several records
  s.walk(2);
  s.non_heap(3, ASSAY_NON_HEAP_STACK, 2, {{0, 1, 1}}); // cut short
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.non_heap.size(), 2u);
  EXPECT_EQ(p.non_heap[0],
            (profile::NonHeapBlock{ASSAY_NON_HEAP_GLOBALS, profile::ModuleId{0}, 0, 64, 5, 6}));
  EXPECT_EQ(p.non_heap[1],
            (profile::NonHeapBlock{ASSAY_NON_HEAP_STACK, profile::ModuleId(), 1, 128, 8, 9}));
}

TEST(Read, OldUnitsOfAModuleSurvive) {
  Stream s;
  s.program();
  s.module(1, "/bin/app", 1);
  s.site(1, ASSAY_SITE_OLD_UNIT, 0, ASSAY_COUNTERS_TOTAL, "src/b.c");
  s.site(1, ASSAY_SITE_OLD_UNIT, 0, ASSAY_COUNTERS_TOTAL, "src/a.c");
  s.site(1, ASSAY_SITE_OLD_UNIT, 0, ASSAY_COUNTERS_TOTAL, "src/a.c");
  s.out.record(ASSAY_RECORD_CounterMode, AssayCounterMode{ASSAY_COUNTERS_TOTAL});
  s.end();
  Profile p = profile::read_bytes(profile::write_bytes(s.read()), "again");
  ASSERT_EQ(p.modules.at(0).units.size(), 2u);
  EXPECT_EQ(p.modules[0].units[0],
            (profile::Unit{"src/a.c", {ASSAY_COUNTERS_TOTAL, 0}, ASSAY_TOOL_heap}));
  EXPECT_TRUE(p.modules[0].instrumented);
  EXPECT_EQ(p.processes[0].counters, uint64_t{ASSAY_COUNTERS_TOTAL});
}

TEST(Read, ImpossibleContentsAreCountedAndSkipped) {
  Stream s;
  s.program();
  s.named(ASSAY_RECORD_Origin, AssayOrigin{0, ASSAY_ORIGIN_POOL}, "number 0");
  s.named(ASSAY_RECORD_Origin, AssayOrigin{1, 9}, "kind 9");
  s.named(ASSAY_RECORD_Event, AssayEvent{0, 1, 1}, "context 0");
  s.out.record(ASSAY_RECORD_CounterMode, AssayCounterMode{3});
  s.non_heap(1, 7, 1, {{0, 1, 1}});
  s.named(ASSAY_RECORD_NonHeap, AssayNonHeap{1, ASSAY_NON_HEAP_STACK, 1}, "odd size");
  s.end();
  Profile p = s.read();
  EXPECT_EQ(p.losses.at(ASSAY_LOSS_bad_record), 6u);
  EXPECT_TRUE(p.events.empty());
  EXPECT_TRUE(p.non_heap.empty());
}

TEST(Read, AContextThatIsMissingKeepsItsCounts) {
  Stream s;
  s.program();
  s.freed(9, Stream::object(0, 1));
  s.end();
  Profile p = s.read();
  EXPECT_EQ(p.heap.at(0).freed.alloc_count, 1u);
  EXPECT_EQ(p.losses.at(ASSAY_LOSS_bad_record), 1u);
}

TEST(Read, FixedPartsOfNewerMinorVersionsAreCut) {
  Stream s;
  s.program();
  std::vector<std::byte> longer(sizeof(AssayContext) + 16);
  AssayContext context = {1, 0, 0, 0};
  std::memcpy(longer.data(), &context, sizeof(context));
  uint64_t frame = 0x10;
  s.out.raw_record(ASSAY_RECORD_Context, longer, std::as_bytes(std::span(&frame, 1)));
  s.freed(1, Stream::object(0, 1));
  s.end();
  Profile p = s.read();
  EXPECT_EQ(p.stack(p.heap.at(0).stack).frames.at(0).offset, 0x10u);
  EXPECT_TRUE(p.losses.empty());
}

TEST(Read, FreePlacesAddUp) {
  Stream s;
  s.program();
  s.context(1, {0x10});
  s.context(2, {0x20});
  s.out.record(ASSAY_RECORD_HeapFreeContext, AssayHeapFreeContext{1, 2, 3, 30});
  s.out.record(ASSAY_RECORD_HeapFreeContext, AssayHeapFreeContext{1, 2, 4, 40});
  s.end();
  Profile p = s.read();
  ASSERT_EQ(p.heap.size(), 1u);
  ASSERT_EQ(p.heap[0].freed_at.size(), 1u);
  EXPECT_EQ(p.heap[0].freed_at[0].count, 7u);
  EXPECT_EQ(p.heap[0].freed_at[0].bytes, 70u);
}

} // namespace
