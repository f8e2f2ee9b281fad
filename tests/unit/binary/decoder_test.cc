// Which accesses an instruction has: each once, however often its micro-ops use what was read. And
// that what was decoded before means what it would if it had not been.

#include "binary/decoder.h"
#include "binary/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace binary {
namespace {

std::vector<uint16_t> sizes(std::initializer_list<int> bytes) {
  std::vector<std::byte> raw;
  for (int byte : bytes)
    raw.push_back(static_cast<std::byte>(byte));
  raw.resize(16);
  Code code;
  EXPECT_TRUE(Decoder().decode(raw, 0x1000, code));
  std::vector<uint16_t> found;
  for (const Access &access : code.accesses)
    found.push_back(access.size);
  return found;
}

TEST(Decoder, ShufflesReadTheirOperandOnce) {
  using Sizes = std::vector<uint16_t>;
  EXPECT_EQ(sizes({0x66, 0x0f, 0x70, 0x07, 0xd8}), Sizes{16});       // pshufd xmm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0xf2, 0x0f, 0x70, 0x07, 0xd8}), Sizes{16});       // pshuflw xmm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0x0f, 0xc6, 0x07, 0x39}), Sizes{16});             // shufps xmm0, [rdi], 0x39
  EXPECT_EQ(sizes({0xc5, 0xfd, 0x70, 0x07, 0xd8}), Sizes{32});       // vpshufd ymm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0xc4, 0xe3, 0x7d, 0x04, 0x07, 0xd8}), Sizes{32}); // vpermilps ymm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0xc4, 0xe3, 0xfd, 0x00, 0x07, 0xd8}), Sizes{32}); // vpermq ymm0, [rdi], 0xd8
}

TEST(Decoder, SystemCallsReadTheirArguments) {
  Code code;
  const std::byte raw[] = {std::byte{0x0f}, std::byte{0x05}};
  ASSERT_TRUE(Decoder().decode(raw, 0x1000, code));
  for (unsigned reg :
       {unsigned{ASSAY_REG_RAX}, unsigned{ASSAY_REG_RDI}, unsigned{ASSAY_REG_R8} + 2})
    EXPECT_TRUE(code.touched_by(code.instructions[0]).reads & bit(reg));
}

Code decoded(std::initializer_list<int> bytes) {
  std::vector<std::byte> raw;
  for (int byte : bytes)
    raw.push_back(static_cast<std::byte>(byte));
  Code code;
  EXPECT_TRUE(Decoder().decode(raw, 0x1000, code));
  return code;
}

class OneWord final : public Memory {
public:
  uint64_t address = 0, value = 0;
  bool load(uint64_t, unsigned, uint64_t &) override { return false; }
  bool store(uint64_t at, unsigned width, uint64_t stored) override {
    address = at;
    value = stored;
    return width == 8;
  }
};

// rcx and where it goes on, after a branch by 0x10 bytes.
std::pair<uint64_t, bool> after_loop(const Code &code, uint64_t rcx, uint64_t flags) {
  const Instruction &instruction = code.instructions.front();
  EXPECT_EQ(instruction.flow, Flow::branch);
  EXPECT_FALSE(instruction.opaque);
  EXPECT_EQ(instruction.target(), instruction.end() + 0x10);
  Machine machine;
  OneWord memory;
  machine.pc = 0x1000;
  machine.registers[ASSAY_REG_RCX] = rcx;
  machine.registers[ASSAY_REG_FLAGS] = flags;
  EXPECT_EQ(execute(code, instruction, machine, memory), Step::done);
  EXPECT_EQ(machine.registers[ASSAY_REG_FLAGS], flags);
  return {machine.registers[ASSAY_REG_RCX], machine.pc == instruction.target()};
}

TEST(Decoder, LoopsAreBranchesThatCountDown) {
  constexpr uint64_t kZero = 0x40, kHigh = uint64_t{5} << 32;
  const int loopne = 0xe0, loope = 0xe1, loop = 0xe2;
  for (int opcode : {loopne, loope, loop})
    for (uint64_t flags : {uint64_t{0}, kZero})
      for (uint64_t low : {1, 2, 0}) {
        const bool holds = opcode == loop || (opcode == loope) == (flags == kZero);
        const Code whole = decoded({opcode, 0x10}), half = decoded({0x67, opcode, 0x10});
        EXPECT_EQ(after_loop(whole, low, flags), std::pair(low - 1, holds && low != 1));
        EXPECT_EQ(after_loop(whole, kHigh + low, flags), std::pair(kHigh + low - 1, holds));
        // The processor writes ecx, so that the upper half becomes 0 (tried with 0x67 0xe2).
        EXPECT_EQ(after_loop(half, kHigh + low, flags),
                  std::pair((low - 1) & 0xffffffff, holds && low != 1));
      }
}

TEST(Decoder, SaysOfWhichInstructionsItKnowsHalf) {
  auto is_half_known = [](std::initializer_list<int> bytes) {
    return bool{decoded(bytes).instructions.front().half_known};
  };
  EXPECT_TRUE(is_half_known({0xc7, 0xf8, 0x10, 0, 0, 0})); // xbegin
  EXPECT_TRUE(is_half_known({0x0f, 0x01, 0xfc}));          // clzero
  EXPECT_TRUE(is_half_known({0xc8, 0x20, 0, 1}));          // enter 32, 1
  EXPECT_TRUE(is_half_known({0x66, 0xc8, 0x20, 0, 0}));    // enter of 16 bits
  EXPECT_TRUE(is_half_known({0x67, 0xf3, 0xa4}));          // rep movsb with edi, esi
  EXPECT_TRUE(is_half_known({0x64, 0xf3, 0xa4}));          // rep movsb from fs
  EXPECT_TRUE(is_half_known({0x66, 0x74, 0x10}));          // je, of 16 bits or not
  EXPECT_TRUE(is_half_known({0xf2, 0xe1, 0x10}));          // loope, with a prefix for repetition
  EXPECT_TRUE(is_half_known({0xf3, 0x67, 0xe0, 0x10}));    // loopne, with one
  EXPECT_TRUE(is_half_known({0xff, 0x1e}));                // call far [rsi]
  EXPECT_FALSE(is_half_known({0xcb}));                     // retf
  EXPECT_FALSE(is_half_known({0xf3, 0xa4}));               // rep movsb
  EXPECT_FALSE(is_half_known({0x67, 0xa4}));               // movsb with edi, esi
  EXPECT_FALSE(is_half_known({0xc8, 0x20, 0, 0}));         // enter 32, 0
  EXPECT_FALSE(is_half_known({0xc8, 0x20, 0, 32}));        // the same: of the level five bits count
  EXPECT_FALSE(is_half_known({0x0f, 0x05}));               // syscall
}

TEST(Decoder, EnterPushesRbp) {
  const Code code = decoded({0xc8, 0x20, 0x80, 0}); // enter 0x8020, 0
  Machine machine;
  OneWord memory;
  machine.registers[ASSAY_REG_RSP] = 0x7000'0000;
  machine.registers[ASSAY_REG_RBP] = 77;
  ASSERT_EQ(execute(code, code.instructions.front(), machine, memory), Step::done);
  EXPECT_EQ(memory.address, 0x7000'0000 - 8u);
  EXPECT_EQ(memory.value, 77u);
  EXPECT_EQ(machine.registers[ASSAY_REG_RBP], 0x7000'0000 - 8u);
  EXPECT_EQ(machine.registers[ASSAY_REG_RSP], 0x7000'0000 - 8u - 0x8020u);
  ASSERT_EQ(code.accesses.size(), 1u);
  EXPECT_TRUE(code.accesses.front().write);
}

// What push and its kin write is below the stack pointer, also where they are not lifted.
TEST(Decoder, PushesWriteBelowTheStackPointer) {
  auto offset = [](std::initializer_list<int> bytes) {
    const Code code = decoded(bytes);
    EXPECT_EQ(code.accesses.size(), 1u);
    EXPECT_EQ(code.uops[code.accesses[0].uop].a, ASSAY_REG_RSP);
    return code.uops[code.accesses[0].uop].i;
  };
  EXPECT_EQ(offset({0x0f, 0xa0}), -8);       // push fs
  EXPECT_EQ(offset({0x66, 0x0f, 0xa8}), -2); // push gs, of 16 bits
  EXPECT_EQ(offset({0x66, 0x9c}), -2);       // pushf, of 16 bits
  EXPECT_EQ(offset({0x0f, 0xa1}), 0);        // pop fs
}

TEST(Decoder, MaskedAccessesAreSaidToBe) {
  auto masked = [](std::initializer_list<int> bytes) {
    const Code code = decoded(bytes);
    EXPECT_EQ(code.accesses.size(), 1u);
    return code.accesses.front().masked;
  };
  EXPECT_TRUE(masked({0x66, 0x0f, 0xf7, 0xc1}));              // maskmovdqu xmm0, xmm1
  EXPECT_TRUE(masked({0x0f, 0xf7, 0xc1}));                    // maskmovq mm0, mm1
  EXPECT_TRUE(masked({0xc5, 0xf9, 0xf7, 0xc1}));              // vmaskmovdqu xmm0, xmm1
  EXPECT_TRUE(masked({0x62, 0xf2, 0x7d, 0x49, 0x89, 0x06}));  // vpexpandd zmm0 {k1}, [rsi]
  EXPECT_FALSE(masked({0x62, 0xf2, 0x7d, 0x48, 0x89, 0x06})); // vpexpandd zmm0, [rsi]
  EXPECT_TRUE(masked({0x62, 0xf2, 0x7d, 0x49, 0x8b, 0x06}));  // vpcompressd [rsi] {k1}, zmm0
  EXPECT_TRUE(masked({0x62, 0xf2, 0x7e, 0x49, 0x31, 0x06}));  // vpmovdb [rsi] {k1}, zmm0
}

extern "C" const std::byte __executable_start, etext; // of this program, from the linker

auto facts(const Instruction &i) {
  return std::tuple(i.address, i.target(), i.uop, i.access, i.uops, i.mnemonic, i.undefined_flags,
                    i.accesses, i.length, i.flow, bool{i.opaque}, bool{i.repeats}, bool{i.moves_fs},
                    i.kept);
}
auto facts(const Touched &t) {
  return std::tuple(t.reads, t.writes);
}
auto facts(const Access &a) {
  return std::tuple(a.uop, a.size, a.write, a.masked);
}

bool is_same(const Code &a, const Code &b) {
  auto agree = [](const auto &x, const auto &y) { return facts(x) == facts(y); };
  return std::ranges::equal(a.instructions, b.instructions, agree) &&
         std::ranges::equal(a.touched, b.touched, agree) &&
         std::ranges::equal(a.accesses, b.accesses, agree) && a.uops.size() == b.uops.size() &&
         std::memcmp(a.uops.data(), b.uops.data(), a.uops.size() * sizeof(assay_uop)) == 0;
}

// The last MiB of this program, read twice, at two places: a decoder that is given no byte more
// than an instruction has at most remembers none.
TEST(Decoder, WhatWasDecodedBeforeMeansTheSame) {
  const std::span<const std::byte> whole(&__executable_start, &etext);
  const auto code = whole.last(std::min(whole.size(), size_t{1} << 20));
  Decoder remembers, forgets;
  size_t instructions = 0;
  for (uint64_t base : {uint64_t{0x1000}, uint64_t{0x7fff0000}})
    for (size_t at = 0; at + 32 < code.size();) {
      Code known, fresh;
      // Not the first ones of a routine, so that their numbers are not 0.
      for (Code *each : {&known, &fresh}) {
        each->uops.resize(3);
        each->accesses.resize(2);
      }
      const bool is_code = forgets.decode(code.subspan(at, 15), base + at, fresh);
      ASSERT_EQ(remembers.decode(code.subspan(at), base + at, known), is_code);
      ASSERT_TRUE(is_same(known, fresh)) << at;
      instructions += is_code;
      at += is_code ? fresh.instructions[0].length : 1;
    }
  EXPECT_GT(instructions, 10'000U);
}

} // namespace
} // namespace binary
