// Sampled values: written and read they are the same; merged, they add up; damaged lists are refused.
#include "profile/profile.h"

#include "abi/records.h"
#include "abi/tools.h"
#include "profile/container.h"
#include "profile/merge.h"

#include <gtest/gtest.h>

#include <random>

using namespace profile;

namespace {

Hotlist random_list(std::mt19937_64 &random, HotlistKind kind) {
  Hotlist list(kind, 12, random());
  for (int window = 0; window < 40; window++) {
    list.begin_window(2);
    list.add(random() % 20, 1, 2);
    list.add(100 + random() % 5, 1, 2);
  }
  return list;
}

Profile random_values(uint64_t seed) {
  std::mt19937_64 random(seed);
  Profile profile;
  Process process;
  process.start_unix_ns = seed;
  process.pid = seed;
  process.tools = ASSAY_TOOL_values;
  process.executable = "/bin/app";
  process.sampling =
      Sampling{ASSAY_COLLECTOR_KERNEL, ASSAY_SAMPLING_COMMAND, 5000, 16, 0, 511, 1000};
  process.ends = {{ASSAY_END_EXIT, 0, 1000}};
  for (uint32_t i = 0; i < 3; i++) {
    Module module;
    module.path = "/lib/" + std::to_string(i);
    module.build_id = {uint8_t(i + 1), 7};
    profile.modules.push_back(module);
    process.mappings.push_back({ModuleId{i}, 0, 0, 0, 0, {}});
  }
  profile.processes.push_back(process);
  profile.values.samples = 100;
  profile.values.ends[0] = 90;
  profile.values.ends[3] = 10;
  for (uint64_t i = 0; i < 30; i++) {
    const ModuleId module{uint32_t(i % 3)};
    profile.values.instructions.push_back({module, 0x1000 + i, {0x90, uint8_t(i)}, i, 2 * i});
    SampledValues values{module,         0x1000 + i, uint8_t(i % ASSAY_VALUE_KINDS),
                         uint8_t(i % 4), {},         {}};
    values.hotlist = random_list(random, HotlistKind::space_saving);
    if (i % 2)
      values.strides = random_list(random, HotlistKind::space_saving);
    profile.values.values.push_back(values);
  }
  profile.values.conflicts.push_back({ModuleId{0}, ModuleId{1}, 5, 6, ASSAY_CONFLICT_ALIAS, 9});
  Assembler assembler;
  assembler.add(profile);
  return assembler.finish();
}

} // namespace

TEST(Values, WrittenAndReadAreTheSame) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    const Profile profile = random_values(seed);
    EXPECT_EQ(profile.values.values.size(), 30u);
    EXPECT_TRUE(read_bytes(write_bytes(profile), "values") == profile) << seed;
  }
}

TEST(Values, MergedRecordingsAddUpInAnyOrder) {
  const Profile a = random_values(1), b = random_values(2);
  Profile ab = a, ba = b;
  merge(ab, b);
  merge(ba, a);
  EXPECT_EQ(ab.values.samples, 200u);
  EXPECT_EQ(ab.values.ends[0], 180u);
  ASSERT_EQ(ab.values.values.size(), a.values.values.size());
  for (size_t i = 0; i < ab.values.values.size(); i++) {
    EXPECT_EQ(ab.values.values[i].hotlist.values(),
              a.values.values[i].hotlist.values() + b.values.values[i].hotlist.values());
    EXPECT_EQ(ab.values.values[i].hotlist.entries(), ba.values.values[i].hotlist.entries());
  }
  EXPECT_EQ(ab.values.conflicts.at(0).count, 18u);
  EXPECT_EQ(ab.values.instructions, ba.values.instructions);
}

TEST(Values, AListThatMakesNoSenseIsLeftOutAndCounted) {

  ContainerWriter out(1, 1);
  AssaySampledValues record = {};
  record.kind = ASSAY_VALUE_KINDS; // there is none of that number
  record.values = record.windows = 1;
  record.capacity = 12;
  out.record(ASSAY_RECORD_SampledValues, record);
  record.kind = 0;
  record.capacity = 0;
  out.record(ASSAY_RECORD_SampledValues, record);
  const Profile read = read_bytes(out.bytes(), "damaged");
  EXPECT_EQ(read.losses.at(ASSAY_LOSS_bad_record), 2u);
  EXPECT_TRUE(read.values.values.empty());
}
