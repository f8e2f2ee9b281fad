// Which loads and stores of a sample stand in each other's way. The code is decoded, the samples
// are written by hand: each says what was executed and where it read and wrote.
#include "values/window_conflicts.h"

#include "abi/records.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>

// Each instruction has a label of its own, so that no test counts bytes.
asm(R"(
.text
.p2align 12
assay_test_conflicts:
assay_test_conflicts_point: mov (%rsi), %rax
assay_test_conflicts_store: mov %rdx, (%rax)
assay_test_conflicts_branch: je assay_test_conflicts_load
assay_test_conflicts_through: mov (%rax), %rbx
assay_test_conflicts_jump: jmp *%r8
assay_test_conflicts_load: mov (%rdi), %rcx
assay_test_conflicts_load4: mov (%rdi), %ecx
assay_test_conflicts_far: mov %rdx, (%r9)
  ret
assay_test_conflicts_end:
)");
extern "C" const char assay_test_conflicts[], assay_test_conflicts_point[],
    assay_test_conflicts_store[], assay_test_conflicts_branch[], assay_test_conflicts_through[],
    assay_test_conflicts_jump[], assay_test_conflicts_load[], assay_test_conflicts_load4[],
    assay_test_conflicts_far[], assay_test_conflicts_end[];

namespace {

using Conflict = std::tuple<std::string, std::string, uint32_t>; // store, load, kind
using Conflicts = std::vector<Conflict>;

constexpr uint64_t kPlace = 0x10000; // of what is stored, a multiple of 4,096

class WindowConflicts : public testing::Test {
protected:
  WindowConflicts() {
    assay_miss miss = {};
    miss.kind = ASSAY_MESSAGE_MISS;
    miss.pid = miss.tid = miss.device = static_cast<uint32_t>(getpid());
    // In memory without a file.
    memory_ = mmap(nullptr, ASSAY_CODE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory_, assay_test_conflicts,
                static_cast<size_t>(assay_test_conflicts_end - assay_test_conflicts));
    miss.address = miss.page = reinterpret_cast<uint64_t>(memory_);
    page_ = code_.fill(miss).page;
    EXPECT_NE(page_, 0u);
  }
  ~WindowConflicts() override { munmap(memory_, ASSAY_CODE_PAGE_BYTES); }
  WindowConflicts(const WindowConflicts &) = delete;
  WindowConflicts &operator=(const WindowConflicts &) = delete;

  uint32_t where(const char *label) const {
    return assay_place_in_page(page_, static_cast<uint64_t>(label - assay_test_conflicts));
  }
  std::string name(uint32_t place) const {
    const std::pair<const char *, const char *> names[] = {
        {assay_test_conflicts_point, "point"},     {assay_test_conflicts_store, "store"},
        {assay_test_conflicts_through, "through"}, {assay_test_conflicts_load, "load"},
        {assay_test_conflicts_load4, "load4"},     {assay_test_conflicts_far, "far"}};
    for (auto [label, name] : names)
      if (where(label) == place)
        return name;
    return "?";
  }

  // What is executed next: with an access, a direction, or nothing that has a value.
  void load(const char *label, uint64_t address, unsigned bytes = 8) {
    add(label, ASSAY_VALUE_load_address, bytes, address);
  }
  void store(const char *label, uint64_t address, unsigned bytes = 8) {
    add(label, ASSAY_VALUE_store_address, bytes, address);
  }
  void branch(bool is_taken) { add(assay_test_conflicts_branch, ASSAY_VALUE_branch, 0, is_taken); }
  void without_value() { steps_++; }

  Conflicts found() {
    assay_sample sample = {};
    sample.instructions = steps_;
    sample.start = values_.empty() ? 0 : values_.front().where;
    Conflicts all;
    values::WindowConflicts(code_).find(sample, values_,
                                        [&](uint32_t store, uint32_t load, uint32_t kind) {
                                          all.emplace_back(name(store), name(load), kind);
                                        });
    return all;
  }

private:
  void add(const char *label, unsigned kind, unsigned detail, uint64_t value) {
    values_.push_back(
        {where(label), static_cast<uint8_t>(kind), static_cast<uint8_t>(detail), steps_++, value});
  }

  std::vector<assay_code_page> pages_{4};
  std::vector<assay_uop> entries_{1 << 12};
  values::CodeCache code_{pages_, entries_, values::kAllKinds};
  void *memory_ = nullptr;
  uint32_t page_ = 0;
  uint16_t steps_ = 0;
  std::vector<assay_sampled_value> values_;
};

// `load` behind `far`, which are no neighbours: nothing is known of registers, but of addresses all.
Conflict far_conflict(uint32_t kind) {
  return {"far", "load", kind};
}

TEST_F(WindowConflicts, AStoreThatCoversTheLoadForwards) {
  for (uint64_t offset : {0, 1, 4}) {
    store(assay_test_conflicts_far, kPlace);
    load(assay_test_conflicts_load4, kPlace + offset, 4);
  }
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, AStoreThatCoversPartOfTheLoadDoesNotForward) {
  for (uint64_t at : {kPlace - 7, kPlace - 1, kPlace + 1, kPlace + 7}) {
    store(assay_test_conflicts_far, kPlace);
    load(assay_test_conflicts_load, at);
  }
  EXPECT_EQ(found(), Conflicts(4, far_conflict(ASSAY_CONFLICT_FORWARDING)));
}

TEST_F(WindowConflicts, NeighboursDoNotOverlap) {
  for (uint64_t at : {kPlace - 8, kPlace + 8}) {
    store(assay_test_conflicts_far, kPlace);
    load(assay_test_conflicts_load, at);
  }
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, OnlyTheYoungestStoreThatOverlapsCounts) {
  store(assay_test_conflicts_far, kPlace + 4); // covers half
  store(assay_test_conflicts_far, kPlace);     // and then all
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, AYoungerStoreWhoseLowBitsAreTheSameIsAnAlias) {
  store(assay_test_conflicts_far, kPlace + 3 * 4096);
  load(assay_test_conflicts_load, kPlace);
  store(assay_test_conflicts_far, kPlace); // the load's own, and behind it an alias
  store(assay_test_conflicts_far, kPlace + 4096);
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), Conflicts(2, far_conflict(ASSAY_CONFLICT_ALIAS)));
}

TEST_F(WindowConflicts, AnAliasBehindTheStoreThatForwardsIsNone) {
  store(assay_test_conflicts_far, kPlace + 4096);
  store(assay_test_conflicts_far, kPlace);
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, ALoadHasOneAliasAtMost) {
  for (uint64_t page = 1; page <= 5; page++)
    store(assay_test_conflicts_far, kPlace + page * 4096);
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), Conflicts(1, far_conflict(ASSAY_CONFLICT_ALIAS)));
}

TEST_F(WindowConflicts, StoresThatHaveLongLeftAreNone) {
  for (int younger : {55, 56}) { // the last of these is 56 stores back, and 57
    store(assay_test_conflicts_far, kPlace + 1);
    for (int i = 0; i < younger; i++)
      store(assay_test_conflicts_far, kPlace + 64);
    load(assay_test_conflicts_load, kPlace);
    EXPECT_EQ(found(), Conflicts(1, far_conflict(ASSAY_CONFLICT_FORWARDING))) << younger;
  }
}

TEST_F(WindowConflicts, AStoreWhoseAddressWaitsForALoadIsOvertaken) {
  load(assay_test_conflicts_point, 0x5100);
  store(assay_test_conflicts_store, kPlace);
  branch(true);
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), (Conflicts{{"store", "load", ASSAY_CONFLICT_ORDER}}));
}

TEST_F(WindowConflicts, ALoadThatWaitsForTheSameLoadOvertakesNothing) {
  load(assay_test_conflicts_point, 0x5100);
  store(assay_test_conflicts_store, kPlace);
  branch(false);
  load(assay_test_conflicts_through, kPlace);
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, AStoreWhoseAddressIsNotInTheSampleIsNotCompared) {
  load(assay_test_conflicts_point, 0x5100);
  without_value(); // the store
  branch(true);
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, InstructionsWithoutValuesAreFollowed) {
  store(assay_test_conflicts_far, kPlace);
  load(assay_test_conflicts_point, 0x5100);
  without_value(); // the store: its address is not in the sample
  without_value(); // the branch: from here on the way is not known
  load(assay_test_conflicts_load, kPlace + 4);
  EXPECT_EQ(found(), Conflicts(1, far_conflict(ASSAY_CONFLICT_FORWARDING)));
}

TEST_F(WindowConflicts, BehindAnIndirectJumpRegistersAreNotKnown) {
  load(assay_test_conflicts_point, 0x5100);
  store(assay_test_conflicts_store, kPlace);
  branch(false);
  load(assay_test_conflicts_through, 0x6200);
  without_value();                           // the jump
  store(assay_test_conflicts_store, kPlace); // rax was known to wait for the first load: no more
  branch(true);
  load(assay_test_conflicts_load, kPlace);
  EXPECT_EQ(found(), Conflicts());
}

TEST_F(WindowConflicts, AnEmptySampleHasNone) {
  EXPECT_EQ(found(), Conflicts());
}

} // namespace
