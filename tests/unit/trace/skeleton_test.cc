#include "base/fail.h"
#include "tests/unit/trace/uops.h"
#include "trace/decode.h"
#include "trace/min_cut.h"

#include <gtest/gtest.h>

#include <cstring>

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;

SkeletonStep in(unsigned reg, uint16_t bytes) {
  return {Kind::in, false, bytes, 0x1000, uop(0, reg, 0, 0)};
}
SkeletonStep access(uint64_t pc, unsigned reg, int64_t offset, bool write = false) {
  return {Kind::access, write, 8, pc, uop(ASSAY_UOP_load, 0, reg, offset)};
}
SkeletonStep add(unsigned reg, int64_t more) {
  return {Kind::compute, false, 0, 0x1010, uop(ASSAY_UOP_add, reg, reg, more)};
}

// Reads upwards from rsi while bytes of the stream are not 0, then writes to what the stream says.
Skeleton searching() {
  Skeleton skeleton;
  skeleton.address = 0x1000;
  skeleton.blocks.resize(2);
  skeleton.blocks[0].steps = {access(0x1000, ASSAY_REG_RSI, 16), add(ASSAY_REG_RSI, 8)};
  skeleton.blocks[0].end = End::logged;
  skeleton.blocks[0].next = {0, 1};
  skeleton.blocks[1].steps = {in(ASSAY_REG_RDX, 4), access(0x1020, ASSAY_REG_RDX, 0, true)};
  return skeleton;
}

// Reads upwards from rsi until it is what the stream says.
Skeleton counted() {
  Skeleton skeleton;
  skeleton.blocks.resize(2);
  skeleton.blocks[0].steps = {in(kLoopEnd, 8)};
  skeleton.blocks[0].end = End::go;
  skeleton.blocks[0].next = {1};
  skeleton.blocks[1].steps = {access(0x2000, ASSAY_REG_RSI, 0), add(ASSAY_REG_RSI, 16)};
  skeleton.blocks[1].end = End::count;
  skeleton.blocks[1].condition = ASSAY_REG_RSI;
  skeleton.blocks[1].next = {1, SkeletonBlock::kOut};
  return skeleton;
}

// A string instruction that compares, with a jump to one of two places before it.
Skeleton choosing() {
  Skeleton skeleton;
  skeleton.blocks.resize(3);
  skeleton.blocks[0].end = End::choose;
  skeleton.blocks[0].next = {1, 2, SkeletonBlock::kOut};
  skeleton.blocks[1].steps = {access(0x3000, ASSAY_REG_RSI, 0)};
  skeleton.blocks[2].steps = {
      {Kind::compare, false, 1, 0x3010, uop(ASSAY_UOP_load, 0, ASSAY_REG_RSI, 0)},
      {Kind::compare, false, 1, 0x3010, uop(ASSAY_UOP_load, 0, ASSAY_REG_RDI, 0)}};
  return skeleton;
}

Group start(uint32_t skeleton, std::initializer_list<uint8_t> registers) {
  Group group;
  group.start = {skeleton, 0};
  for (uint8_t reg : registers)
    group.values.push_back({0, reg});
  return group;
}

class Bytes {
public:
  template <class T> Bytes &put(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return *this;
  }
  std::vector<std::byte> bytes;
};

class Skeletons : public testing::Test {
protected:
  Skeletons() {
    TracedFile file;
    file.number = 1;
    file.groups = 3;
    const std::vector<Skeleton> all = {searching(), counted(), choosing()};
    decoder.add_skeletons(file, decode_skeletons(encode(all), 3));
    const std::vector<Group> groups = {start(0, {ASSAY_REG_RSI}), start(1, {ASSAY_REG_RSI}),
                                       start(2, {ASSAY_REG_RCX, ASSAY_REG_RSI, ASSAY_REG_RDI})};
    decoder.add(file, decode_groups(encode(groups), 3));
  }
  void decode(const std::vector<std::byte> &bytes) {
    decoder.decode({}, position, bytes, 0, bytes.size(), output);
  }
  void finish() { decoder.finish(position, output); }
  std::vector<uint64_t> addresses() const {
    std::vector<uint64_t> all;
    for (const profile::Access &each : accesses)
      all.push_back(each.address);
    return all;
  }
  GroupDecoder decoder;
  StreamPosition position;
  std::vector<profile::Access> accesses;
  AccessOutput output{
      [this](auto batch) { accesses.insert(accesses.end(), batch.begin(), batch.end()); }};
};

TEST_F(Skeletons, FollowWhatIsLogged) {
  decode(Bytes()
             .put(uint32_t{1})
             .put(uint64_t{0x100})
             .put(uint8_t{1})
             .put(uint8_t{0})
             .put(uint32_t{0x500})
             .put(uint32_t{2})
             .put(uint64_t{0x800})
             .put(uint64_t{0x830})
             .bytes);
  finish();
  EXPECT_EQ(addresses(), (std::vector<uint64_t>{0x110, 0x118, 0x500, 0x800, 0x810, 0x820}));
  EXPECT_TRUE(accesses[2].is_write);
  EXPECT_EQ(decoder.sites()[accesses[2].site].offset, 0x1020u);
}

// A stream is cut anywhere; nothing is said of what may not have happened.
TEST_F(Skeletons, WaitForWhatComes) {
  const auto bytes = Bytes()
                         .put(uint32_t{1})
                         .put(uint64_t{0x100})
                         .put(uint8_t{1})
                         .put(uint8_t{0})
                         .put(uint32_t{0x500})
                         .bytes;
  decode({bytes.begin(), bytes.begin() + 12});
  EXPECT_TRUE(accesses.empty());
  decode({bytes.begin() + 12, bytes.begin() + 13});
  EXPECT_EQ(accesses.size(), 1u);
  decode({bytes.begin() + 13, bytes.begin() + 14});
  EXPECT_EQ(accesses.size(), 2u);
  StreamPosition killed = position;
  decode({bytes.begin() + 14, bytes.end()});
  EXPECT_EQ(accesses.size(), 2u);
  finish();
  EXPECT_EQ(addresses().back(), 0x500u);
  position = killed;
  finish();
  EXPECT_EQ(accesses.size(), 3u); // not what it waits for
}

TEST_F(Skeletons, ChooseAndRepeat) {
  const auto begin = [](uint16_t chosen) {
    return Bytes()
        .put(uint32_t{3})
        .put(uint64_t{5})
        .put(uint64_t{0x100})
        .put(uint64_t{0x200})
        .put(chosen);
  };
  decode(begin(0).bytes);
  finish();
  EXPECT_EQ(addresses(), (std::vector<uint64_t>{0x100}));
  decode(begin(1).put(uint64_t{3}).bytes);
  EXPECT_EQ(addresses(), (std::vector<uint64_t>{0x100, 0x100, 0x200, 0x101, 0x201}));
  decode(begin(2).bytes);
  finish();
  EXPECT_EQ(accesses.size(), 5u);
  EXPECT_THROW(decode(begin(3).bytes), base::Failure);
}

TEST(SkeletonData, DamageIsRefused) {
  const auto bytes = encode(std::vector<Skeleton>{searching(), choosing()});
  EXPECT_EQ(encode(decode_skeletons(bytes, 2)), bytes);
  EXPECT_THROW(decode_skeletons(std::span(bytes).first(bytes.size() - 1), 2), base::Failure);
  auto is_refused = [](auto change) {
    Skeleton damaged = searching();
    change(damaged);
    EXPECT_THROW(decode_skeletons(encode(std::vector<Skeleton>{damaged}), 1), base::Failure);
  };
  is_refused([](Skeleton &s) { s.blocks[0].next[0] = 7; });
  is_refused([](Skeleton &s) { s.blocks[0].next.clear(); });
  is_refused([](Skeleton &s) { s.blocks[0].condition = kSkeletonVariables; });
  is_refused([](Skeleton &s) { s.blocks[0].steps[0].uop.a = kSkeletonVariables; });
  is_refused([](Skeleton &s) { s.blocks[0].steps[1].uop.op = ASSAY_UOP_load; });
  is_refused([](Skeleton &s) { s.blocks[0].steps[1].uop.op = ASSAY_UOP_float_add; });
  is_refused([](Skeleton &s) { s.blocks[0].steps[1].uop.width = 3; });
  is_refused([](Skeleton &s) { s.blocks[1].steps[0].size = 16; });
}

TEST(MinCut, IsTheCheapest) {
  // a (10) and b (1) make c (5); c makes d (2) and e (9).
  MinCut cut;
  const uint32_t a = cut.node(10), b = cut.node(1), c = cut.node(5), d = cut.node(2),
                 e = cut.node(9);
  cut.source(a);
  cut.source(b);
  cut.edge(a, c);
  cut.edge(b, c);
  cut.edge(c, d);
  cut.edge(c, e);
  cut.sink(d);
  cut.sink(e);
  ASSERT_TRUE(cut.solve());
  EXPECT_TRUE(cut.is_cut(c));
  for (uint32_t other : {a, b, d, e})
    EXPECT_FALSE(cut.is_cut(other));
}

TEST(MinCut, MayBeImpossible) {
  MinCut cut;
  const uint32_t a = cut.node(MinCut::kNever);
  cut.source(a);
  cut.sink(a);
  EXPECT_FALSE(cut.solve());
}

} // namespace
} // namespace trace
