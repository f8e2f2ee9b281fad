// Fields: what is written is read, merging is adding, damaged records are refused.

#include "profile/merge.h"
#include "profile/profile.h"

#include "abi/fields.h"
#include "abi/tools.h"
#include "profile/container.h"

#include <gtest/gtest.h>

#include <random>

namespace {

using profile::FieldSet;
using profile::FieldUse;
using profile::Profile;

profile::Record record(uint64_t hash, size_t leaves) {
  profile::Record record;
  record.name = "R" + std::to_string(hash);
  record.hash = hash;
  record.size = leaves * 8;
  record.file = "r.h";
  record.line = static_cast<uint32_t>(hash);
  for (size_t i = 0; i < leaves; i++)
    record.leaves.push_back({i * 64, 64, 0, 1, 0, 8, "f" + std::to_string(i), "long"});
  return record;
}

// A profile of one process in canonical form.
Profile random_profile(uint64_t seed) {
  std::mt19937_64 random(seed);
  Profile p;
  p.processes.emplace_back();
  p.processes[0].pid = seed + 1;
  p.processes[0].start_unix_ns = seed * 1000;
  p.processes[0].tools = ASSAY_TOOL_fields;
  p.processes[0].executable = "/bin/program";
  p.processes[0].ends.push_back({1, 0, 5});
  p.modules.push_back({"/bin/program", {1, 2, 3}, true, {}, {}});
  p.processes[0].mappings.push_back({{0}, 0x1000, 0x2000, 0, 0, std::nullopt});
  for (uint64_t i = 0; i < 4; i++)
    if (random() % 4)
      p.fields.records.push_back(record(i + 1, 3 + i));
  for (uint32_t r = 0; r < p.fields.records.size(); r++)
    for (int i = 0; i < 5; i++) {
      FieldUse use;
      use.record = {r};
      use.first = static_cast<uint32_t>(random() % 3);
      use.module = {0};
      use.function = "function" + std::to_string(random() % 3);
      use.line = static_cast<uint32_t>(random() % 4);
      use.reads = random() % 1000;
      use.writes = random() % 1000;
      p.fields.uses.push_back(use);
      FieldSet set{{r}, static_cast<uint32_t>(random() % 2), {0, 2}, random() % 50 + 1, 0};
      set.adjacent = random() % set.count;
      p.fields.sets.push_back(set);
      p.fields.sampling.push_back({{r}, random() % 50, random() % 500, random() % 900});
      p.fields.sharing.push_back({{r}, {r}, 0, 1, random() % 5, random() % 9 + 5});
    }
  FieldUse lost;
  lost.module = {0};
  lost.function = "function0";
  lost.reads = 7;
  p.fields.uses.push_back(lost);
  Profile canonical; // equal keys become one
  profile::merge(canonical, p);
  return canonical;
}

uint64_t accesses(const Profile &p) {
  uint64_t sum = 0;
  for (const FieldUse &use : p.fields.uses)
    sum += use.reads + use.writes;
  return sum;
}

TEST(Fields, AreReadAsWritten) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    Profile p = random_profile(seed);
    EXPECT_EQ(profile::read_bytes(profile::write_bytes(p), "fields"), p) << seed;
  }
}

TEST(Fields, MergingAddsInAnyOrder) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    Profile a = random_profile(seed), b = random_profile(seed + 100), ab = a, ba = b;
    profile::merge(ab, b);
    profile::merge(ba, a);
    EXPECT_EQ(ab.fields, ba.fields) << seed;
    EXPECT_EQ(accesses(ab), accesses(a) + accesses(b)) << seed;
  }
}

// What counters counted, by the entries that explain them.
class Counted : public testing::Test {
protected:
  Counted() : out(1, 1) {
    out.record(ASSAY_RECORD_Program, AssayProgram{1, 0, 1, ASSAY_TOOL_fields, 0}, {});
    AssayModule module = {};
    module.module = 1;
    module.end = 0x1000;
    out.record(ASSAY_RECORD_Module, module, std::as_bytes(std::span("/bin/p", 7)));
  }
  static void put(std::string &to, std::initializer_list<int> numbers) {
    for (int n : numbers)
      to += static_cast<char>(n);
  }
  static std::string entry(uint32_t kind, const std::string &body) {
    AssaySite site = {kind, static_cast<uint32_t>((sizeof(AssaySite) + body.size() + 7) / 8 * 8)};
    std::string bytes(reinterpret_cast<const char *>(&site), sizeof site);
    bytes += body;
    bytes.resize(site.size);
    return bytes;
  }
  template <class T> static std::string raw(const T &value) {
    return {reinterpret_cast<const char *>(&value), sizeof value};
  }
  void write_sites() {
    std::string body = raw(AssaySiteRecord{42, 16, 3, 2});
    body += std::string("S\0s.h\0", 6);
    put(body, {0, 64, 0, 1, 0, 8});
    body += std::string("a\0long\0", 7);
    put(body, {64, 64, 0, 1, 0, 8});
    body += std::string("b\0long\0", 7);
    std::string unit = raw(AssaySiteFields{0, 0, 2, 2, 3, 1, 1, 0}) + raw(uint64_t{42});
    unit += std::string("main\0", 5);
    put(unit, {2, 0, 5}); // derived 0: counter 0 less counter 1
    put(unit, {1, 3});    // derived 1: less derived 0
    put(unit, {0, 7, 0, 1, ASSAY_RECORD_FIRST, 0, 1, 2, 0, 0, 0, 0}); // reads a and b twice
    put(unit, {0, 8, 1, 1, ASSAY_RECORD_LOST, 0, 0, 1, 0, 0, 0, 0});
    put(unit, {0, 9, 3, 1, ASSAY_RECORD_LOST, 0, 0, 1, 0, 0, 0, 0}); // below zero: never
    std::string sites = entry(ASSAY_SITE_RECORD, body);
    site = static_cast<uint32_t>(sites.size());
    sites += entry(ASSAY_SITE_FIELDS, unit);
    out.record(ASSAY_RECORD_Sites, AssaySites{1}, std::as_bytes(std::span(sites)));
  }
  void write_counts(std::initializer_list<int> numbers) {
    std::string counts;
    put(counts, numbers);
    out.record(ASSAY_RECORD_FieldCounts, AssayFieldCounts{1, site},
               std::as_bytes(std::span(counts)));
  }
  profile::ContainerWriter out;
  uint32_t site = 0;
};

TEST_F(Counted, CountersBecomeAccesses) {
  write_sites();
  write_counts({0, 10, 0, 12}); // both counters
  write_counts({0, 5});
  Profile p = profile::read_bytes(out.bytes(), "counts");
  ASSERT_EQ(p.fields.records.size(), 1U);
  ASSERT_EQ(p.fields.uses.size(), 2U);
  const FieldUse &both = p.fields.uses[0].record.known() ? p.fields.uses[0] : p.fields.uses[1];
  EXPECT_EQ(both.reads, 30U);
  EXPECT_EQ(both.more, 1U);
  EXPECT_EQ(both.line, 7U);
  EXPECT_EQ(accesses(p), 33U);
  ASSERT_EQ(p.fields.sets.size(), 1U);
  EXPECT_EQ(p.fields.sets[0].leaves, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(p.fields.sets[0].count, 15U);
  EXPECT_EQ(profile::read_bytes(profile::write_bytes(p), "again").fields, p.fields);
}

TEST_F(Counted, AResetLeavesOutWhatWasBefore) {
  write_sites();
  write_counts({0, 10});
  out.record(ASSAY_RECORD_Reset, AssayReset{5}, {});
  write_counts({0, 2});
  EXPECT_EQ(accesses(profile::read_bytes(out.bytes(), "reset")), 6U); // 4 of a and b, and 2 derived
}

TEST_F(Counted, CountersThatNobodyDescribesAreALoss) {
  write_sites();
  write_counts({5, 10});
  Profile p = profile::read_bytes(out.bytes(), "unknown");
  EXPECT_EQ(p.losses[ASSAY_LOSS_bad_record], 1U);
  EXPECT_EQ(accesses(p), 0U);
}

} // namespace
