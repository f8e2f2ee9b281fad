// Whatever is added to a folder is there once: in the file of its executable, in the sums, or in a loss.
#include "base/fail.h"
#include "profile/merge.h"
#include "values/profile_folder.h"

#include "abi/records.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace {

namespace fs = std::filesystem;
using values::ProfileFolder;
using values::ProfilePart;

// A list of `windows` samples of one value each, at one instruction of a module.
profile::SampledValues list_of(uint32_t module, uint64_t offset, uint64_t windows) {
  profile::SampledValues list;
  list.module.v = module;
  list.offset = offset;
  list.kind = ASSAY_VALUE_result;
  list.detail = 8;
  list.hotlist = profile::Hotlist(profile::HotlistKind::space_saving, 12, 1);
  for (uint64_t i = 0; i < windows; i++) {
    list.hotlist.begin_window(1);
    list.hotlist.add(7, 1, 1);
  }
  return list;
}

// A recording of two executables, the kernel and code that was made, and of samples that no file has.
struct Recording {
  profile::Profile whole;
  std::vector<values::ValueSums::Ends> ends;
};
Recording recording() {
  Recording r;
  r.whole.modules = {{"/usr/bin/one", {1, 2, 3}, false, {}, {}},
                     {"/usr/bin/two", {4, 5, 6}, false, {}, {}},
                     {"[kernel]", {}, false, {}, {}},
                     {"[made]", {}, false, {}, {}}};
  for (uint32_t module = 0; module < 4; module++) {
    r.whole.values.values.push_back(list_of(module, 16, 10 + module));
    r.whole.values.values.push_back(list_of(module, 32, 1));
    profile::SampledInstruction instruction;
    instruction.module.v = module;
    instruction.offset = 16;
    instruction.bytes = {0x90};
    instruction.interrupts = 10;
    r.whole.values.instructions.push_back(instruction);
    r.ends.emplace_back()[0] = 20;
  }
  r.whole.values.samples = 100; // 20 of them in no file
  r.whole.values.ends[0] = 100;
  profile::Process process;
  process.pid = 1;
  process.sampling.emplace();
  process.sampling->hertz = 100;
  process.sampling->duration_us = 1000;
  r.whole.processes.push_back(process);
  return r;
}

uint64_t values_in(const profile::Profile &profile) {
  uint64_t sum = 0;
  for (const profile::SampledValues &each : profile.values.values)
    sum += each.hotlist.values();
  return sum;
}

uint64_t lost_in(const profile::Profile &profile) {
  auto known = profile.losses.find(ASSAY_LOSS_many_places);
  return known == profile.losses.end() ? 0 : known->second;
}

class Folders : public testing::Test {
protected:
  profile::Profile everything() const {
    profile::Profile sum;
    for (const fs::directory_entry &file : fs::directory_iterator(path_))
      profile::merge(sum, profile::read({file.path().string()}));
    return sum;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.in("profiles");
};

TEST_F(Folders, ARecordingIsSplitWithoutLoss) {
  const Recording r = recording();
  const std::vector<ProfilePart> parts = values::split_by_executable(r.whole, r.ends);
  std::set<std::string> files;
  uint64_t samples = 0, ends = 0, values = 0, instructions = 0;
  for (const ProfilePart &part : parts) {
    EXPECT_TRUE(files.insert(part.file).second) << part.file;
    samples += part.profile.values.samples;
    ends += part.profile.values.ends[0];
    values += values_in(part.profile);
    instructions += part.profile.values.instructions.size();
    if (part.file == "system.assay") {
      EXPECT_EQ(part.profile.values.samples, 20u);
    } else {
      EXPECT_EQ(part.profile.modules.size(), 1u);
    }
  }
  EXPECT_EQ(files.size(), 5u);
  EXPECT_EQ(samples, r.whole.values.samples);
  EXPECT_EQ(ends, r.whole.values.ends[0]);
  EXPECT_EQ(values, values_in(r.whole));
  EXPECT_EQ(instructions, r.whole.values.instructions.size());
}

TEST_F(Folders, WhatIsAddedAgainAddsUp) {
  const Recording r = recording();
  ProfileFolder folder(path_, 1 << 30);
  for (int round = 0; round < 3; round++)
    for (const ProfilePart &part : values::split_by_executable(r.whole, r.ends))
      folder.add(part);
  const profile::Profile sum = everything();
  EXPECT_EQ(sum.values.samples, 300u);
  EXPECT_EQ(values_in(sum), 3 * values_in(r.whole));
  EXPECT_EQ(sum.values.values.size(), r.whole.values.values.size());
  for (const fs::directory_entry &file : fs::directory_iterator(path_)) {
    const profile::Profile one = profile::read({file.path().string()});
    ASSERT_EQ(one.processes.size(), 1u) << file.path();
    EXPECT_EQ(one.processes[0].sampling->duration_us, 3000u);
  }
}

TEST_F(Folders, TheHeaviestStayAndTheOthersAreALoss) {
  profile::Profile profile = recording().whole;
  const uint64_t before = values_in(profile);
  const size_t instructions = profile.values.instructions.size();
  ASSERT_GT(instructions, 3u);
  values::cut_to(profile, 3, 30);
  EXPECT_EQ(profile.values.values.size(), 3u);
  EXPECT_EQ(profile.values.instructions.size(), instructions); // where the time goes is still known
  for (const profile::SampledValues &each : profile.values.values)
    EXPECT_GE(each.hotlist.windows(), 11u);
  EXPECT_EQ(profile.values.samples, 100u);
  EXPECT_EQ(values_in(profile) + lost_in(profile), before);
}

TEST_F(Folders, TheOldestFilesMakeRoomAndAreALoss) {
  const Recording r = recording();
  ProfileFolder folder(path_, 3 * 4096); // each file takes a block
  const auto parts = values::split_by_executable(r.whole, r.ends);
  auto time = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const ProfilePart &part : parts) {
    folder.add(part);
    fs::last_write_time(fs::path(path_) / part.file, time += std::chrono::minutes(1));
  }
  EXPECT_EQ(folder.remove_oldest(), 2u);
  EXPECT_FALSE(fs::exists(fs::path(path_) / parts[0].file));
  EXPECT_FALSE(fs::exists(fs::path(path_) / parts[1].file));
  EXPECT_EQ(folder.remove_oldest(), 0u);
  folder.add(parts.back());
  const profile::Profile left = everything();
  EXPECT_EQ(values_in(left) + lost_in(left), values_in(r.whole));
  folder.add(parts.back()); // it is said once
  EXPECT_EQ(lost_in(everything()), lost_in(left));
}

std::string why_not(const std::string &folder) {
  try {
    ProfileFolder second(folder, 1 << 30);
    return "";
  } catch (const base::Failure &failure) {
    return failure.what();
  }
}

TEST_F(Folders, OneRecordingAtATime) {
  {
    ProfileFolder first(path_, 1 << 30);
    EXPECT_NE(why_not(path_).find("another recording writes to this folder"), std::string::npos);
  }
  EXPECT_EQ(why_not(path_), "");
  std::ofstream(path_ + "/file") << "no folder";
  EXPECT_NE(why_not(path_ + "/file/below").find("cannot be made"), std::string::npos);
}

TEST_F(Folders, ARemovedOneIsMadeAgainAndIsTheNextOnesIfThatWasFaster) {
  const Recording r = recording();
  const auto parts = values::split_by_executable(r.whole, r.ends);
  ProfileFolder first(path_, 1 << 30);
  fs::remove_all(path_);
  EXPECT_EQ(first.add(parts[0]), "");
  EXPECT_NE(why_not(path_).find("another recording"), std::string::npos); // it holds the new one
  fs::remove_all(path_);
  ProfileFolder second(path_, 1 << 30);
  for (int round = 0; round < 2; round++)
    EXPECT_THROW(first.add(parts[0]), base::Failure);
  EXPECT_EQ(second.add(parts[0]), "");
}

TEST_F(Folders, ADamagedFileIsPutAside) {
  const Recording r = recording();
  const auto parts = values::split_by_executable(r.whole, r.ends);
  ProfileFolder folder(path_, 1 << 30);
  const std::string file = path_ + "/" + parts[0].file;
  std::ofstream(file) << "something else";
  EXPECT_NE(folder.add(parts[0]).find("it is " + file + ".damaged now"), std::string::npos);
  EXPECT_EQ(folder.add(parts[0]), "");
  EXPECT_EQ(values_in(profile::read({file})), 2 * values_in(parts[0].profile));
  std::string text;
  std::ifstream aside(file + ".damaged");
  std::getline(aside, text);
  EXPECT_EQ(text, "something else");
}

} // namespace
