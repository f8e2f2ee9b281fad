// Sums are conserved from contexts to every grouping; findings speak on evidence and keep silent on
// noise.

#include "analyze/heap.h"

#include "abi/tools.h"
#include "base/fail.h"
#include "tests/unit/profile/profile_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

analyze::HeapResult analyze_it(const profile::Profile &profile, const std::string &filter = "") {
  image::Symbols symbols = image::open(analyze::module_files(profile));
  return analyze::heap(profile, symbols, {filter, {}, {}});
}

AssayObject cold_object() {
  AssayObject o = {};
  o.size = 4096;
  o.reads = 1;
  o.free_us = 2000000;
  o.blocks_spanned = 64;
  o.blocks_touched = 1;
  o.touched_bytes = 64;
  return o;
}

profile::Profile profile_of(const AssayObject &object, int count, bool temporary_spread = false) {
  profile::Assembler assembler;
  auto module = assembler.module("/nowhere/app", {1, 2, 3}, true);
  auto &context =
      profile::heap_context(assembler, assembler.stack({{{module, 0x1000}}, false}), {});
  for (int i = 0; i < count; i++) {
    AssayObject o = object;
    if (temporary_spread)
      o.alloc_us += i, o.free_us += i;
    AssayHib one = assay_hib_of(&o);
    assay_hib_merge(&context.freed, &one, 1);
  }
  profile::Process process;
  process.executable = "/nowhere/app";
  process.ends.push_back({ASSAY_END_EXIT, 0, 2000000});
  assembler.profile().processes.push_back(process);
  return assembler.finish();
}

TEST(Heap, PartsSumToTheWhole) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    auto result = analyze_it(profile_builder::random_profile(seed, 30));
    analyze::HeapSums contexts, sites, types, modules;
    for (const auto &row : result.sites)
      sites.add(row.sums);
    for (const auto &row : result.contexts)
      contexts.add(row.sums);
    for (const auto &row : result.types)
      types.add(row.sums);
    for (const auto &row : result.modules)
      modules.add(row.sums);
    for (const analyze::HeapSums *sums : {&contexts, &sites, &types, &modules}) {
      EXPECT_EQ(sums->all.alloc_count, result.totals.all.alloc_count);
      EXPECT_EQ(sums->all.size_total, result.totals.all.size_total);
      EXPECT_EQ(sums->accesses(), result.totals.accesses());
      EXPECT_EQ(sums->live.size_total, result.totals.live.size_total);
      EXPECT_EQ(sums->all.cold_byte_us_total, result.totals.all.cold_byte_us_total);
    }
  }
}

// A recording of sampled values beside it has a time of its own.
TEST(Heap, TheRunIsThatWhoseHeapWasMeasured) {
  profile::Profile p = profile_of(cold_object(), 3);
  profile::Process other = p.processes[0];
  other.tools = ASSAY_TOOL_values;
  other.ends[0].time_us = 9000000;
  p.processes.push_back(other);
  EXPECT_EQ(analyze_it(p).run_us, 2000000u);
  p.processes.erase(p.processes.begin());
  EXPECT_EQ(analyze_it(p).run_us, 9000000u); // of that alone it is all that is known
}

TEST(Heap, AFilterAndItsComplementAreEverything) {
  profile::Profile p = profile_builder::random_profile(4, 30);
  auto all = analyze_it(p), some = analyze_it(p, "Type1|module1");
  EXPECT_EQ(some.contexts.size() + some.filtered_out, all.contexts.size());
  EXPECT_GT(some.contexts.size(), 0u);
  EXPECT_GT(some.filtered_out, 0u);
  EXPECT_THROW(analyze_it(p, "("), base::Failure);
}

TEST(Heap, RanksDescend) {
  auto result = analyze_it(profile_builder::random_profile(6, 40));
  for (const auto &question : analyze::heap_questions()) {
    auto order = analyze::ranked(result.contexts, question);
    for (size_t i = 1; i < order.size(); i++)
      EXPECT_GE(question.rank(result.contexts[order[i - 1]].sums),
                question.rank(result.contexts[order[i]].sums));
  }
  EXPECT_THROW(analyze::heap_question("nonsense"), base::Failure);
}

TEST(Heap, IdsAreTheSameInTheNextRunAndDiffer) {
  auto one = analyze_it(profile_builder::random_profile(7, 30));
  auto again = analyze_it(profile_builder::random_profile(7, 30));
  std::set<std::string> ids;
  for (size_t i = 0; i < one.contexts.size(); i++) {
    EXPECT_EQ(one.contexts[i].id, again.contexts[i].id);
    ids.insert(one.contexts[i].id);
  }
  EXPECT_GT(ids.size(), 10u);
}

TEST(Heap, CountersSayWhatTheReportCanTell) {
  profile::Profile p = profile_of(cold_object(), 1000);
  EXPECT_TRUE(analyze_it(p).reads_apart);
  EXPECT_EQ(analyze_it(p).block_bytes, 64u);
  p.processes[0].counters = ASSAY_COUNTERS_TOTAL;
  EXPECT_FALSE(analyze_it(p).reads_apart);
  EXPECT_EQ(analyze_it(p).block_bytes, 64u);
  p.processes[0].counters = ASSAY_COUNTERS_FINE | ASSAY_COUNTERS_GLOBALS;
  EXPECT_FALSE(analyze_it(p).reads_apart);
  EXPECT_TRUE(analyze_it(p).globals_counted);
  EXPECT_EQ(analyze_it(p).block_bytes, 32u);
  EXPECT_TRUE(analyze_it(p).notes.size() == 1); // the file is not there
  p.processes.push_back(p.processes[0]);
  p.processes[1].counters = ASSAY_COUNTERS_HALVES;
  EXPECT_FALSE(analyze_it(p).reads_apart);
  EXPECT_EQ(analyze_it(p).block_bytes, 64u);
  EXPECT_EQ(analyze_it(p).notes.size(), 2u);
}

TEST(Heap, ModulesThatAllocateAndWereNotRebuiltAreALoss) {
  profile::Assembler assembler;
  auto app = assembler.module("/nowhere/app", {1}, true);
  auto plain = assembler.module("/nowhere/libplain.so", {2}, false);
  auto libc = assembler.module("/lib/libc.so.6", {3}, false);
  auto vdso = assembler.module("[vdso]", {}, false);
  for (auto module : {app, plain, libc, vdso}) {
    AssayObject object = {};
    object.size = 10;
    profile::heap_context(assembler, assembler.stack({{{module, 0x10}, {app, 0x20}}, false}), {})
        .freed = assay_hib_of(&object);
  }
  profile::Process process;
  process.ends.push_back({ASSAY_END_EXIT, 0, 10});
  assembler.profile().processes.push_back(process);
  profile::Profile p = assembler.finish();
  auto result = analyze_it(p);
  EXPECT_EQ(result.losses.at(ASSAY_LOSS_uninstrumented_module), 1u);
  EXPECT_EQ(result.uninstrumented_allocators, std::vector<std::string>{"/nowhere/libplain.so"});
  EXPECT_EQ(result.counted_bytes_share, 0.25);

  p.losses[ASSAY_LOSS_no_shadow] = 1; // nobody's accesses are counted
  result = analyze_it(p);
  EXPECT_EQ(result.losses.count(ASSAY_LOSS_uninstrumented_module), 0u);
  EXPECT_EQ(result.counted_bytes_share, 0);
}

TEST(HeapFindings, ColdBytesAreFound) {
  auto result = analyze_it(profile_of(cold_object(), 1000));
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].rule, "cold_bytes");
  // 1000 objects of 4032 untouched bytes, for the whole run
  EXPECT_NEAR(result.findings[0].saves.amount, 4032000, 1);
}

AssayObject half_empty_buffer() {
  AssayObject o = {};
  o.size = 1 << 20;
  o.writes = 100;
  o.free_us = 1; // not cold
  o.blocks_spanned = 1 << 14;
  o.blocks_touched = 1 << 12;
  o.touched_bytes = 1 << 18;
  return o;
}

TEST(HeapFindings, OverReserveIsFoundAndIsNotAWastedLine) {
  profile::Profile p = profile_of(half_empty_buffer(), 10);
  p.heap[0].freed.realloc_count = 70;
  auto result = analyze_it(p);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rule, "over_reserve");
  EXPECT_EQ(result.findings[0].saves.amount, 10 * 0.75 * (1 << 20));
  EXPECT_NE(result.findings[0].message.find("7.50 MiB of the 10.0 MiB"), std::string::npos);
  EXPECT_NE(result.findings[0].evidence.find("70 calls of realloc"), std::string::npos);
  // A library may fill what counted code does not touch: no size is advised without that condition.
  EXPECT_NE(result.findings[0].action.find("code, reserve about 256 KiB at once"),
            std::string::npos);
  EXPECT_EQ(result.findings[0].qualified_by, std::vector<std::string>{"uncounted_use"});
  EXPECT_EQ(analyze::ranked(result.sites, analyze::heap_question("reserve")).size(), 1u);
}

// The last bytes of a buffer are as cold as they are reserved.
TEST(HeapFindings, OneSiteGetsOneAdvice) {
  AssayObject o = half_empty_buffer();
  o.free_us = 2000000;
  auto result = analyze_it(profile_of(o, 10));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rule, "cold_bytes");
  EXPECT_NE(result.findings[0].action.find("code, ask for about 256 KiB"), std::string::npos);
}

TEST(HeapFindings, NotAllIsNot100Percent) {
  AssayObject o = cold_object();
  o.size = 1 << 20;
  o.blocks_spanned = 1 << 14;
  profile::Profile p = profile_of(o, 100);
  p.types.push_back({1, "Table", 1 << 20});
  p.heap[0].type = profile::TypeId{0};
  auto result = analyze_it(p);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].message.find("> 99.9 % of the bytes in"), 0u)
      << result.findings[0].message;
}

// A filter chooses what is shown: shares are those of the run.
TEST(HeapFindings, AFilterChangesNoShare) {
  profile::Profile p = profile_of(cold_object(), 1000);
  p.types.push_back({1, "Cold", 4096});
  p.types.push_back({2, "Other", 4096});
  p.heap[0].type = profile::TypeId{0};
  p.heap.push_back(p.heap[0]);
  p.heap[1].type = profile::TypeId{1};
  auto all = analyze_it(p), some = analyze_it(p, "Cold");
  EXPECT_EQ(all.whole.all.size_total, all.totals.all.size_total);
  EXPECT_EQ(some.whole.all.size_total, all.totals.all.size_total);
  ASSERT_FALSE(some.findings.empty());
  for (const auto &finding : some.findings)
    EXPECT_TRUE(std::any_of(all.findings.begin(), all.findings.end(), [&](const auto &each) {
      return each.message == finding.message && each.evidence == finding.evidence &&
             each.weight == finding.weight;
    })) << finding.evidence;
}

TEST(HeapFindings, AStructWithUnusedMembersIsNotReserved) {
  profile::Profile p = profile_of(half_empty_buffer(), 10);
  p.types.push_back({1, "Huge", 1 << 20});
  p.heap[0].type = profile::TypeId{0};
  auto result = analyze_it(p);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rule, "wasted_lines");
}

TEST(HeapFindings, BuffersThatAreHalfUsedOrNeverUsedAreNotOverReserved) {
  AssayObject o = half_empty_buffer();
  o.blocks_touched = (1 << 13) + 1;
  o.touched_bytes = o.blocks_touched * 64;
  EXPECT_TRUE(analyze_it(profile_of(o, 10)).findings.empty());
  o.writes = o.blocks_touched = o.touched_bytes = 0;
  EXPECT_TRUE(analyze_it(profile_of(o, 10)).findings.empty());
}

TEST(Heap, FreesOfASiteAreSummedByLine) {
  profile::Assembler assembler;
  auto module = assembler.module("/nowhere/app", {1}, true);
  auto stack = [&](std::vector<uint64_t> offsets) {
    profile::Stack stack;
    for (uint64_t offset : offsets)
      stack.frames.push_back({module, offset});
    return assembler.stack(stack);
  };
  // One site by two ways, freed at 0x50 by two ways and at 0x60.
  for (uint64_t way : {1, 2}) {
    auto &context = profile::heap_context(assembler, stack({0x10, way}), {});
    context.peak_bytes = 1;
    context.freed_at = {{stack({0x50, way}), 2, 20}, {stack({0x60}), 5 - 2 * way, 10}};
  }
  auto result = analyze_it(assembler.finish());
  ASSERT_EQ(result.contexts.size(), 2u);
  ASSERT_EQ(result.sites.size(), 1u);
  const auto &freed = result.sites[0].freed_at;
  ASSERT_EQ(freed.size(), 2u);
  EXPECT_EQ(freed[0].owner_frame().address, 0x4fu);
  EXPECT_EQ(freed[0].count, 4u);
  EXPECT_EQ(freed[0].bytes, 40u);
  EXPECT_EQ(freed[1].count, 4u);
}

TEST(HeapFindings, WhatALibraryTouchesIsNotCold) {
  profile::Profile p = profile_of(cold_object(), 1000);
  p.modules.at(0).instrumented = false;
  auto result = analyze_it(p);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(analyze::ranked(result.contexts, analyze::heap_question("cold")).empty());
  EXPECT_FALSE(analyze::ranked(result.contexts, analyze::heap_question("bytes")).empty());
}

TEST(Heap, BriefPlacesKeepTheClass) {
  image::Frame frame;
  frame.function = "pugi::impl::(anonymous namespace)::xml_parser::parse(char*)";
  frame.file = "src/pugixml.cpp";
  frame.line = 12;
  EXPECT_EQ(analyze::brief_place(frame), "xml_parser::parse at pugixml.cpp:12");
  frame.function = "main";
  frame.line = 0;
  EXPECT_EQ(analyze::brief_place(frame), "main in pugixml.cpp");
}

TEST(HeapFindings, AFewColdBytesAreNoise) {
  EXPECT_TRUE(analyze_it(profile_of(cold_object(), 3)).findings.empty());
}

TEST(HeapFindings, AFewKilobytesHeldForHoursAreNoise) {
  profile::Profile p = profile_of(cold_object(), 1000);
  p.processes[0].ends[0].time_us = 3'600'000'000; // of an hour, two seconds: 2 KiB on average
  for (const analyze::Finding &finding : analyze_it(p).findings)
    EXPECT_NE(finding.rule, "cold_bytes");
}

TEST(HeapFindings, WhatCostsNoTimeIsNoise) {
  AssayObject o = {};
  o.size = 32;
  o.writes = o.blocks_spanned = o.blocks_touched = 1;
  o.touched_bytes = 32;
  o.free_us = 2;
  EXPECT_TRUE(analyze_it(profile_of(o, 10000, true)).findings.empty()); // in 2 s
  o.free_us = 5000;                                                     // no churn
  o.free_cpu = 1;
  EXPECT_TRUE(analyze_it(profile_of(o, 10000)).findings.empty());
  auto result = analyze_it(profile_of(o, 50000));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rule, "migration");
}

TEST(HeapFindings, CopiesOfReallocAreHeldAgainstTheTimeOfTheRun) {
  AssayObject o = {};
  o.size = 1 << 20;
  o.writes = 1 << 17;
  o.free_us = 5000;
  o.blocks_spanned = o.blocks_touched = 1 << 14;
  o.touched_bytes = 1 << 20;
  profile::Profile p = profile_of(o, 10);
  p.heap[0].freed.realloc_count = 70;
  p.heap[0].freed.realloc_moved_bytes = 12 << 20;
  EXPECT_TRUE(analyze_it(p).findings.empty()); // in 2 s
  p.processes[0].ends[0].time_us = 20'000;
  auto result = analyze_it(p);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rule, "realloc_growth");
}

TEST(HeapFindings, WhatGrowsByAFactorIsNotToldTo) {
  AssayObject o = {};
  o.size = 8 << 20;
  o.writes = 1 << 20;
  o.free_us = 5000;
  o.blocks_spanned = o.blocks_touched = 1 << 17;
  o.touched_bytes = 8 << 20;
  profile::Profile p = profile_of(o, 1);
  p.processes[0].ends[0].time_us = 20'000;
  auto action = [&](uint64_t calls, uint64_t moved) {
    p.heap[0].freed.realloc_count = calls;
    p.heap[0].freed.realloc_moved_bytes = moved;
    auto result = analyze_it(p);
    return result.findings.empty() ? std::string() : result.findings.front().action;
  };
  const std::string factor = "ask for the final size at once: it grows by a factor already";
  EXPECT_EQ(action(19, (8 << 20) - 16), factor); // doubled from 16 B on
  EXPECT_EQ(action(33, 16 << 20),
            "ask for the final size at once, or grow by a factor instead of a step");
  EXPECT_NE(action(19, 72 << 20), factor); // steps of 430 KiB
}

TEST(HeapFindings, ABufferThatSomebodyElseMayFillIsNotJudged) {
  AssayObject o = {}; // 64 MiB for read(), of which the program looks at the first bytes
  o.size = 64 << 20;
  o.reads = 1;
  o.free_us = 2000000;
  o.blocks_spanned = 1 << 20;
  o.blocks_touched = 1;
  o.touched_bytes = 64;
  profile::Profile p = profile_of(o, 1);
  EXPECT_TRUE(analyze_it(p).findings.empty());
  p.types.push_back({1, "unsigned char", 1});
  p.heap[0].type = profile::TypeId{0};
  EXPECT_TRUE(analyze_it(p).findings.empty());
  for (const char *type :
       {"volatile char", "const volatile unsigned char", "std::byte", "volatile std::byte",
        "char8_t", "char16_t", "wchar_t", "uint8_t", "unsigned char [64]", "char const"}) {
    p.types[0] = {1, type, 0};
    EXPECT_TRUE(analyze_it(p).findings.empty()) << type;
  }
  p.types[0] = {1, "byte_enum", 1};
  EXPECT_TRUE(analyze_it(p).findings.empty());
  p.types[0] = {1, "const Table", 64 << 20};
  EXPECT_EQ(analyze_it(p).findings.size(), 2u);
  p.types[0] = {1, "Table", 64 << 20};          // nobody reads a file into a Table
  EXPECT_EQ(analyze_it(p).findings.size(), 2u); // cold, and badly used
}

TEST(HeapFindings, UncountedAccessesAreNotCold) {
  profile::Profile p = profile_of(cold_object(), 1000);
  p.losses[ASSAY_LOSS_no_shadow] = 1;
  EXPECT_TRUE(analyze_it(p).findings.empty());
}

TEST(HeapFindings, ChurnIsFoundAndQualified) {
  AssayObject o = {};
  o.size = 32;
  o.writes = o.reads = 1;
  o.blocks_spanned = o.blocks_touched = 1;
  o.touched_bytes = 32;
  o.free_us = 2;
  o.temporary = 1;
  profile::Profile p = profile_of(o, 50000, true);
  p.losses[ASSAY_LOSS_killed] = 1;
  auto result = analyze_it(p);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rule, "churn");
  EXPECT_EQ(result.findings[0].saves.amount, 50000);
  EXPECT_EQ(result.findings[0].qualified_by, std::vector<std::string>{"killed"});
}

} // namespace
