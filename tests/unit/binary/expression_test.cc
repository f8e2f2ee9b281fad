// Normal forms mean what was asked for: random expressions are built through the public interface, and
// beside each its value, computed by the micro-ops themselves on random values of the leaves. What is
// left of the expression, evaluated by its structure, must have that value, on every set of leaves.

#include "abi/uop_step.h"
#include "binary/expression.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace binary;

constexpr unsigned kSamples = 6; // sets of values of the leaves
using Values = std::array<uint64_t, kSamples>;

constexpr unsigned kWidths[] = {1, 2, 4, 8};

struct Built {
  ExprId id;
  Values values;       // what it must be
  std::string asked{}; // for people
};

bool is_integer(unsigned op) {
  return assay_uop_is_value(op) && !assay_uop_is_lane(op) && op != ASSAY_UOP_string_step;
}

class Random {
public:
  explicit Random(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t limit) { return random_() % limit; }
  unsigned width() { return kWidths[below(4)]; }
  uint64_t word() {
    static constexpr uint64_t kEdges[] = {
        0,      1,          0x7f,       0x80,       0xff,       0x100,      0x7fff,     0x8000,
        0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32, 1ULL << 63, ~0ULL >> 1, ~0ULL};
    switch (below(4)) {
    case 0: return kEdges[below(std::size(kEdges))];
    case 1: return below(64);
    case 2: return 0 - below(200);
    default: return random_();
    }
  }

private:
  std::mt19937_64 random_;
};

// What memory holds: any function of the address will do.
uint64_t memory(uint64_t address, uint64_t state, unsigned width) {
  uint64_t hash = (address + 0x9e3779b97f4a7c15 * (state + 1)) * 0xbf58476d1ce4e5b9;
  return (hash ^ hash >> 29) & uop_mask(width);
}

std::string describe(const Expressions &expressions, ExprId id, unsigned depth = 0) {
  const Expr &node = expressions[id];
  std::string result = "(" + std::to_string(static_cast<unsigned>(node.kind)) + " op " +
                       std::to_string(node.op) + " width " + std::to_string(node.width) +
                       " value " + std::to_string(node.value);
  for (const Term &term : expressions.terms(id))
    result += " + " + std::to_string(static_cast<int64_t>(term.coefficient)) + "*" +
              (depth < 4 ? describe(expressions, term.of, depth + 1) : "…");
  return result + ")";
}

class World {
public:
  World(Random &random, Expressions &expressions) : random_(random), expressions_(expressions) {}

  // A new leaf, with its values.
  Built leaf() {
    Built made;
    switch (random_.below(8)) {
    case 0: {
      uint64_t value = random_.word();
      made = {expressions_.constant(value), {}};
      made.values.fill(value);
      return made;
    }
    case 1: {
      uint64_t which = counters_.size();
      counters_.push_back(words(8));
      return {expressions_.counter(which), counters_.back()};
    }
    case 2: {
      ExprId id = expressions_.unknown();
      unknowns_.push_back({id, words(8)});
      return unknowns_.back();
    }
    default: {
      unsigned width = random_.width();
      uint64_t which = definitions_.size();
      definitions_.push_back(words(width));
      return {expressions_.definition(which, width), definitions_.back()};
    }
    }
  }

  Built operation(const std::vector<Built> &from) {
    auto pick = [&]() -> const Built & { return from[random_.below(from.size())]; };
    const Built &a = pick(), &b = pick(), &c = pick();
    Built made;
    auto each = [&](auto value) {
      for (unsigned i = 0; i < kSamples; i++)
        made.values[i] = value(i);
    };
    switch (random_.below(12)) {
    case 0:
      made.id = expressions_.add(a.id, b.id);
      each([&](unsigned i) { return a.values[i] + b.values[i]; });
      break;
    case 1:
      made.id = expressions_.sub(a.id, b.id);
      each([&](unsigned i) { return a.values[i] - b.values[i]; });
      break;
    case 2: {
      uint64_t factor = random_.word();
      made.id = expressions_.scale(a.id, factor);
      each([&](unsigned i) { return a.values[i] * factor; });
      break;
    }
    case 3: {
      uint64_t ca = random_.word(), cb = random_.word();
      made.id = expressions_.combine(a.id, ca, b.id, cb);
      each([&](unsigned i) { return a.values[i] * ca + b.values[i] * cb; });
      break;
    }
    case 4: {
      unsigned width = random_.width();
      made.id = expressions_.zero_extend(a.id, width);
      each([&](unsigned i) { return a.values[i] & uop_mask(width); });
      break;
    }
    case 5: {
      unsigned width = random_.width();
      made.id = expressions_.sign_extend(a.id, width);
      each([&](unsigned i) { return static_cast<uint64_t>(uop_signed(a.values[i], width)); });
      break;
    }
    case 6: {
      unsigned width = random_.width();
      uint64_t state = random_.below(3);
      made.id = expressions_.load(width, a.id, state);
      each([&](unsigned i) { return memory(a.values[i], state, width); });
      break;
    }
    default: return micro_op(a, b, c);
    }
    return made;
  }

  uint64_t evaluate(ExprId id, unsigned sample) {
    if (known_.size() < expressions_.size())
      known_.resize(expressions_.size());
    auto &known = known_[id.v];
    if (known.done & 1u << sample)
      return known.values[sample];
    uint64_t value = compute(id, sample);
    auto &result = known_[id.v];
    result.done |= 1u << sample;
    result.values[sample] = value;
    return value;
  }

private:
  struct Known {
    unsigned done = 0; // a bit for each sample
    Values values;
  };

  Values words(unsigned width) {
    Values values;
    for (uint64_t &value : values)
      value = random_.word() & uop_mask(width);
    return values;
  }

  Built micro_op(const Built &a, Built b, Built c) {
    assay_uop uop{};
    do
      uop.op = static_cast<uint8_t>(random_.below(ASSAY_UOP_lane_add));
    while (!is_integer(uop.op));
    // Those that sums and extensions are made of come more often.
    static constexpr uint8_t kFrequent[] = {
        ASSAY_UOP_copy, ASSAY_UOP_sign_extend, ASSAY_UOP_lea, ASSAY_UOP_add,   ASSAY_UOP_sub,
        ASSAY_UOP_mul,  ASSAY_UOP_and,         ASSAY_UOP_or,  ASSAY_UOP_shl,   ASSAY_UOP_neg,
        ASSAY_UOP_not,  ASSAY_UOP_xor,         ASSAY_UOP_shr, ASSAY_UOP_put32, ASSAY_UOP_put8};
    if (random_.below(2))
      uop.op = kFrequent[random_.below(std::size(kFrequent))];
    uop.width = static_cast<uint8_t>(random_.width());
    if (assay_uop_is_put(uop.op) || uop.op == ASSAY_UOP_put8h)
      uop.width = 8; // others are not made
    Built zero{expressions_.constant(0), {}};
    // Operands that a micro-op does not have are the register that is 0.
    unsigned operands = operands_of(uop.op);
    if (operands < 3)
      c = zero;
    if (operands < 2)
      b = zero;
    if (uop.op == ASSAY_UOP_sign_extend)
      uop.i = 64 - 8 * static_cast<int32_t>(kWidths[random_.below(3)]);
    else if (uop.op == ASSAY_UOP_crc32)
      uop.i = static_cast<int32_t>(random_.width());
    else if (uop.op == ASSAY_UOP_lea) {
      uop.i = static_cast<int32_t>(random_.word());
      uop.shift = static_cast<uint8_t>(random_.below(4));
    } else if (operands == 2 && random_.below(3) == 0) { // with a constant
      uop.b = ASSAY_UOP_IMMEDIATE;
      uop.imm = static_cast<int64_t>(random_.word());
      b.id = expressions_.constant(static_cast<uint64_t>(uop.imm));
      b.values.fill(static_cast<uint64_t>(uop.imm));
    }
    Built made{expressions_.apply(uop, a.id, b.id, c.id), {}};
    made.asked = "micro-op " + std::to_string(uop.op) + " of width " + std::to_string(uop.width) +
                 ", i " + std::to_string(uop.i) +
                 (uop.b == ASSAY_UOP_IMMEDIATE ? ", immediate" : "") + ", of\n  " +
                 describe(expressions_, a.id) + "\n  " + describe(expressions_, b.id) + "\n  " +
                 describe(expressions_, c.id);
    for (unsigned i = 0; i < kSamples; i++)
      made.values[i] = assay_uop_value(&uop, a.values[i], b.values[i], c.values[i]);
    return made;
  }

  static unsigned operands_of(unsigned op) {
    switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)                                             \
  case ASSAY_UOP_##name: return operands;
#include "abi/uops.def"
    default: return 0;
    }
  }

  uint64_t compute(ExprId id, unsigned sample) {
    const Expr node = expressions_[id];
    std::vector<Term> terms(expressions_.terms(id).begin(), expressions_.terms(id).end());
    switch (node.kind) {
    case ExprKind::constant: return node.value;
    case ExprKind::definition: return definitions_.at(node.value)[sample];
    case ExprKind::counter: return counters_.at(node.value)[sample];
    case ExprKind::sum: {
      uint64_t sum = node.value;
      for (const Term &term : terms)
        sum += term.coefficient * evaluate(term.of, sample);
      return sum;
    }
    case ExprKind::zero_extend: return evaluate(terms[0].of, sample) & uop_mask(node.width);
    case ExprKind::sign_extend:
      return static_cast<uint64_t>(uop_signed(evaluate(terms[0].of, sample), node.width));
    case ExprKind::load: return memory(evaluate(terms[0].of, sample), node.value, node.width);
    case ExprKind::operation: {
      uint64_t operands[3] = {};
      for (size_t i = 0; i < terms.size(); i++)
        operands[i] = terms[i].coefficient * evaluate(terms[i].of, sample);
      assay_uop uop{};
      uop.op = node.op;
      uop.width = node.width;
      uop.shift = static_cast<uint8_t>(node.value >> 32);
      uop.i = static_cast<int32_t>(node.value);
      return assay_uop_value(&uop, operands[0], operands[1], operands[2]);
    }
    case ExprKind::unknown:
      for (const Built &unknown : unknowns_)
        if (unknown.id == id)
          return unknown.values[sample];
    }
    ADD_FAILURE() << "an expression of kind " << static_cast<unsigned>(node.kind);
    return 0;
  }

  Random &random_;
  Expressions &expressions_;
  std::vector<Values> definitions_, counters_;
  std::vector<Built> unknowns_;
  std::vector<Known> known_;
};

TEST(Expressions, MeanWhatWasAskedFor) {
  Random random(1);
  size_t checked = 0, simplified = 0;
  for (unsigned world = 0; world < 3000; world++) {
    Expressions expressions;
    World values(random, expressions);
    std::vector<Built> built;
    for (unsigned leaf = 0; leaf < 8; leaf++)
      built.push_back(values.leaf());
    for (unsigned step = 0; step < 40; step++) {
      size_t before = expressions.size();
      Built made = values.operation(built);
      simplified += expressions.size() == before;
      for (unsigned sample = 0; sample < kSamples; sample++) {
        uint64_t value = values.evaluate(made.id, sample);
        ASSERT_EQ(value, made.values[sample]) << "world " << world << ", step " << step << ": "
                                              << describe(expressions, made.id) << "\n"
                                              << made.asked;
        ASSERT_LE(value, expressions.most(made.id))
            << "world " << world << ", step " << step << ": " << describe(expressions, made.id);
      }
      if (expressions.is_constant(made.id))
        ASSERT_EQ(expressions.offset_of(made.id), made.values[0]);
      built.push_back(made);
      checked++;
    }
  }
  EXPECT_GE(checked, 20'000u);
  EXPECT_GT(simplified, 2'000u);
}

// Sums of leaves, as coefficients of them: equal ones are the same object, however they were made.
TEST(Expressions, EqualSumsAreOneObject) {
  constexpr unsigned kLeaves = 7;
  Random random(2);
  for (unsigned world = 0; world < 400; world++) {
    Expressions expressions;
    struct Sum {
      ExprId id;
      std::array<uint64_t, kLeaves + 1> coefficients; // the last of 1
    };
    std::vector<Sum> sums;
    for (unsigned leaf = 0; leaf <= kLeaves; leaf++) {
      Sum sum{{}, {}};
      sum.id = leaf == kLeaves ? expressions.constant(1)
               : leaf % 2      ? expressions.counter(leaf)
                               : expressions.definition(leaf, random.width());
      sum.coefficients[leaf] = 1;
      sums.push_back(sum);
    }
    for (unsigned step = 0; step < 60; step++) {
      const Sum a = sums[random.below(sums.size())], b = sums[random.below(sums.size())];
      uint64_t ca = random.below(4) - 1, cb = random.below(3) ? 1 : random.word();
      Sum made{expressions.combine(a.id, ca, b.id, cb), {}};
      for (unsigned i = 0; i <= kLeaves; i++)
        made.coefficients[i] = ca * a.coefficients[i] + cb * b.coefficients[i];
      // The same from its parts.
      ExprId again = expressions.constant(made.coefficients[kLeaves]);
      for (unsigned i = kLeaves; i-- > 0;)
        again = expressions.add(expressions.scale(sums[i].id, made.coefficients[i]), again);
      ASSERT_EQ(made.id, again) << describe(expressions, made.id);
      for (const Sum &other : sums)
        ASSERT_EQ(other.id == made.id, other.coefficients == made.coefficients);
      ASSERT_EQ(expressions.sub(expressions.add(a.id, b.id), b.id), a.id);
      ASSERT_TRUE(expressions.is_constant(expressions.sub(a.id, a.id), 0));
      const ExprId difference = expressions.sub(a.id, b.id);
      const std::optional<uint64_t> distance = expressions.distance(a.id, b.id);
      ASSERT_EQ(distance.has_value(), expressions.is_constant(difference));
      if (distance)
        ASSERT_EQ(*distance, expressions.offset_of(difference));
      sums.push_back(made);
    }
  }
}

TEST(Expressions, EqualCutsAreOneObject) {
  Expressions e;
  ExprId a = e.definition(1), b = e.definition(2), narrow = e.definition(3, 4);
  ExprId one = e.constant(1);
  for (unsigned width : {1u, 2u, 4u}) {
    auto zero = [&](ExprId id) { return e.zero_extend(id, width); };
    auto sign = [&](ExprId id) { return e.sign_extend(id, width); };
    EXPECT_EQ(zero(zero(a)), zero(a));
    EXPECT_EQ(sign(sign(a)), sign(a));
    EXPECT_EQ(sign(zero(a)), sign(a));
    EXPECT_EQ(zero(sign(a)), zero(a));
    // Inside, only the low bytes count.
    EXPECT_EQ(zero(e.add(zero(a), sign(b))), zero(e.add(a, b)));
    EXPECT_EQ(sign(e.sub(e.add(a, b), b)), sign(a));
    EXPECT_EQ(zero(e.add(e.scale(a, uint64_t{1} << 8 * width), b)), zero(b));
    EXPECT_EQ(zero(e.add(a, e.constant(uop_mask(width)))), zero(e.sub(a, one)));
    EXPECT_EQ(zero(a) == e.add(zero(a), e.scale(one, uint64_t{1} << 8 * width)), false);
  }
  EXPECT_EQ(e.zero_extend(narrow, 4), narrow);
  EXPECT_EQ(e.zero_extend(narrow, 8), narrow);
  EXPECT_NE(e.sign_extend(narrow, 4), narrow);
  EXPECT_NE(e.zero_extend(e.add(narrow, one), 4), e.add(narrow, one)); // it may wrap around
  EXPECT_EQ(e.sign_extend(e.definition(4, 2), 4), e.definition(4, 2)); // cannot be negative
}

TEST(Expressions, WhatIsNotKnownEqualsNothing) {
  Expressions e;
  ExprId a = e.unknown(), b = e.unknown(), address = e.definition(1);
  EXPECT_NE(a, b);
  EXPECT_FALSE(e.is_constant(e.sub(a, b)));
  EXPECT_TRUE(e.is_constant(e.sub(a, a), 0));
  EXPECT_EQ(e.load(4, address, 1), e.load(4, address, 1));
  EXPECT_NE(e.load(4, address, 1), e.load(4, address, 2)); // another state of memory
  EXPECT_NE(e.load(4, address, 1), e.load(8, address, 1));
  EXPECT_NE(e.definition(7), e.counter(7));
}

// Long sums are taken as they are, and still mean what they mean.
TEST(Expressions, LongSums) {
  Random random(3);
  for (unsigned world = 0; world < 50; world++) {
    Expressions expressions;
    World values(random, expressions);
    Built sum = values.leaf();
    for (unsigned i = 0; i < 80; i++) {
      Built leaf = values.leaf();
      uint64_t factor = random.word();
      sum.id = expressions.combine(sum.id, 1, leaf.id, factor);
      for (unsigned sample = 0; sample < kSamples; sample++) {
        sum.values[sample] += factor * leaf.values[sample];
        ASSERT_EQ(values.evaluate(sum.id, sample), sum.values[sample]) << "term " << i;
      }
    }
  }
}

// Nor do sums of 32 bits grow with what is added to them: each would have all the terms of the one before.
TEST(Expressions, LongSumsOfCuts) {
  Random random(4);
  Expressions expressions;
  World values(random, expressions);
  Built sum = values.leaf();
  for (unsigned i = 0; i < 400; i++) {
    Built leaf = values.leaf();
    ExprId whole = expressions.add(sum.id, expressions.zero_extend(leaf.id, 4));
    sum.id = expressions.zero_extend(whole, 4);
    for (unsigned sample = 0; sample < kSamples; sample++) {
      sum.values[sample] =
          static_cast<uint32_t>(sum.values[sample] + static_cast<uint32_t>(leaf.values[sample]));
      ASSERT_EQ(values.evaluate(sum.id, sample), sum.values[sample]) << "term " << i;
    }
    EXPECT_LE(expressions.terms(expressions.terms(sum.id)[0].of).size(), 24u);
  }
}

} // namespace
