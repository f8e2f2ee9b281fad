// A chain that was kept from call to call is the one that unwinding from nothing gives, however the
// stack changed meanwhile: by calls and returns, other call sites, recursion through several
// functions, a stack as deep as the chain.
#include "runtime/core/runtime.h"
#include "runtime/core/stacks/call_chain.h"
#include "runtime/core/system/proc_maps.h"
#include "runtime/core/system/real_functions.h"
#include "runtime/core/system/thread.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace {

using assay::CallChain;

class Chains : public testing::TestWithParam<unsigned> {
public:
  static void SetUpTestSuite() { // of the runtime, which never starts here, what unwinding needs
    assay::find_real_functions();
    assay::open_proc_files();
    ASSERT_TRUE(assay::runtime.modules.create());
  }

  // In the place of an interposed function: it has a frame pointer.
  [[gnu::noinline, clang::optnone]] void allocate() {
    assay::ReentrancyGuard busy;
    const void *frame = __builtin_frame_address(0);
    kept_->update(frame);
    fresh_->clear();
    fresh_->update(frame);
    compare();
  }

  // Of a very deep stack, unwinding from nothing does not reach the outermost frames; a chain that
  // was kept may know them.
  void compare() {
    if (fresh_->is_cut()) {
      cut_++;
      return;
    }
    calls_++;
    deepest_ = std::max(deepest_, fresh_->depth());
    recursions_ += fresh_->recurs();
    bool same = kept_->depth() == fresh_->depth() &&
                kept_->path_hash(assay::kMaxDepth) == fresh_->path_hash(assay::kMaxDepth) &&
                kept_->recurs() == fresh_->recurs();
    if (same && kept_->recurs())
      same = kept_->levels() == fresh_->levels() &&
             kept_->calls_to_deepest() == fresh_->calls_to_deepest();
    for (uint32_t i = 0; same && i < kept_->depth(); i++)
      same = kept_->pc(i) == fresh_->pc(i);
    differences_ += !same;
  }

  uint32_t below(uint32_t limit) { return uint32_t(random_() % limit); }

  std::unique_ptr<CallChain> kept_{new CallChain()}, fresh_{new CallChain()};
  std::mt19937 random_{GetParam()};
  uint64_t calls_ = 0, differences_ = 0, recursions_ = 0, cut_ = 0;
  uint32_t deepest_ = 0;
};

// Functions that call each other from several places, with frames of different sizes. The volatile after each call
// keeps it from being a tail call.
volatile int sink;

void walk(Chains &chains, uint32_t depth, uint32_t kind);

template <size_t kBytes> [[gnu::noinline]] void step(Chains &chains, uint32_t depth) {
  volatile char frame[kBytes];
  frame[0] = char(depth);
  if (chains.below(3) == 0)
    chains.allocate();
  for (uint32_t calls = chains.below(3); calls > 0 && depth > 0; calls--) {
    walk(chains, depth - 1, chains.below(4));
    sink = frame[0];
  }
  chains.allocate();
  if (chains.below(4) == 0 && depth > 0)
    walk(chains, depth - 1, chains.below(4));
  sink = frame[0];
}

[[gnu::noinline]] void walk(Chains &chains, uint32_t depth, uint32_t kind) {
  switch (kind) {
  case 0: step<8>(chains, depth); break;
  case 1: step<100>(chains, depth); break;
  case 2: step<1000>(chains, depth); break;
  default: chains.allocate();
  }
  sink = int(kind);
}

// Straight down, and up again a little at a time.
[[gnu::noinline]] void descend(Chains &chains, uint32_t depth) {
  if (depth % 37 == 0)
    chains.allocate();
  if (depth > 0)
    descend(chains, depth - 1);
  if (depth % 53 == 0)
    walk(chains, 2, chains.below(4));
  sink = int(depth);
}

// More functions than a chain tells apart without forgetting what it learnt of them.
constexpr size_t kManyFunctions = 1500;
using Link = void (*)(Chains &, uint32_t depth);
extern const std::array<Link, kManyFunctions> links;

template <size_t kWhich> [[gnu::noinline]] void link(Chains &chains, uint32_t depth) {
  if (depth == 0 || chains.below(4) == 0)
    chains.allocate();
  if (depth > 0)
    links[chains.below(kManyFunctions)](chains, depth - 1);
  sink = int(kWhich);
}
template <size_t... kWhich>
constexpr std::array<Link, kManyFunctions> all_links(std::index_sequence<kWhich...>) {
  return {link<kWhich>...};
}
constexpr std::array<Link, kManyFunctions> links =
    all_links(std::make_index_sequence<kManyFunctions>());

TEST_P(Chains, AreThoseOfUnwindingFromNothing) {
  for (int round = 0; round < 200; round++)
    walk(*this, 12, below(3));
  EXPECT_EQ(differences_, 0u) << "of " << calls_;
  EXPECT_GT(calls_, 1000u);
  EXPECT_GT(recursions_, 100u);
  EXPECT_GT(deepest_, 4u);
}

TEST_P(Chains, OfDeepStacks) {
  for (uint32_t depth : {90u, 100u, 500u, 2000u, 900u})
    descend(*this, depth + below(50));
  EXPECT_EQ(differences_, 0u) << "of " << calls_;
  EXPECT_GT(recursions_, 50u);
  EXPECT_GT(cut_, 0u);
}

TEST_P(Chains, ThroughManyFunctions) {
  for (int round = 0; round < 400; round++)
    links[below(kManyFunctions)](*this, 12);
  EXPECT_EQ(differences_, 0u) << "of " << calls_;
  EXPECT_GT(calls_, 1000u);
}

// A coroutine's stack in turn with the thread's own.
TEST_P(Chains, OnTwoStacks) {
  static Chains *chains;
  static ucontext_t own, other;
  chains = this;
  std::vector<char> stack(1 << 20);
  ASSERT_EQ(getcontext(&other), 0);
  other.uc_stack.ss_sp = stack.data();
  other.uc_stack.ss_size = stack.size();
  makecontext(
      &other,
      [] {
        for (;;) {
          links[chains->below(kManyFunctions)](*chains, 12);
          swapcontext(&other, &own);
        }
      },
      0);
  for (int round = 0; round < 4000; round++) {
    links[below(kManyFunctions)](*this, 12);
    ASSERT_EQ(swapcontext(&own, &other), 0);
  }
  EXPECT_EQ(differences_, 0u) << "of " << calls_;
  EXPECT_GT(calls_, 2000u);
}

INSTANTIATE_TEST_SUITE_P(Random, Chains, testing::Range(1u, 11u));

} // namespace
