// Where the return address lies before each instruction, of functions whose stack is known by construction.
#include "values/caller_rules.h"

#include "abi/uop.h"

#include <gtest/gtest.h>

#include <link.h>

// Each instruction has a label of its own, so that no test counts bytes.
asm(R"(
.text
assay_test_framed: .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
assay_test_framed_pushed:
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
assay_test_framed_set:
  sub $32, %rsp
assay_test_framed_body:
  nop
  leave
  .cfi_def_cfa %rsp, 8
assay_test_framed_left:
  ret
.cfi_endproc

assay_test_frameless: .cfi_startproc
  sub $40, %rsp
  .cfi_adjust_cfa_offset 40
assay_test_frameless_body:
  push %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_offset %rbx, -56
assay_test_frameless_pushed:
  pop %rbx
  .cfi_remember_state
  .cfi_adjust_cfa_offset -8
  add $40, %rsp
  .cfi_adjust_cfa_offset -40
assay_test_frameless_early:
  ret
  .cfi_restore_state
assay_test_frameless_restored:
  pop %rbx
  .cfi_adjust_cfa_offset -8
  add $40, %rsp
  .cfi_adjust_cfa_offset -40
  ret
.cfi_endproc

assay_test_realigned: .cfi_startproc
  lea 8(%rsp), %r10
  .cfi_def_cfa %r10, 0
assay_test_realigned_body:
  and $-64, %rsp
  lea -8(%r10), %rsp
  .cfi_def_cfa %rsp, 8
  ret
.cfi_endproc

assay_test_expression: .cfi_startproc
  # DW_CFA_def_cfa_expression: DW_OP_breg7 (rsp) 8
  .cfi_escape 0x0f, 2, 0x77, 8
  nop
assay_test_expression_body:
  ret
.cfi_endproc

assay_test_signal: .cfi_startproc
  .cfi_signal_frame
  nop
assay_test_signal_body:
  ret
.cfi_endproc

assay_test_untold:
  nop
  ret
)");

extern "C" {
#pragma GCC visibility push(hidden)
extern const char assay_test_framed, assay_test_framed_pushed, assay_test_framed_set,
    assay_test_framed_body, assay_test_framed_left, assay_test_frameless, assay_test_frameless_body,
    assay_test_frameless_pushed, assay_test_frameless_early, assay_test_frameless_restored,
    assay_test_realigned, assay_test_realigned_body, assay_test_expression_body,
    assay_test_signal_body, assay_test_untold;
#pragma GCC visibility pop
}

namespace {

using values::CallerRule;

// Of this executable.
uint64_t linked_address(const char &label) {
  uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *to) {
        *static_cast<uint64_t *>(to) = info->dlpi_addr;
        return 1; // the first is the program
      },
      &bias);
  return reinterpret_cast<uint64_t>(&label) - bias;
}

class Rules : public testing::Test {
protected:
  std::optional<CallerRule> at(const char &label) { return rules_.at(linked_address(label)); }

  static constexpr uint16_t kStack = ASSAY_REG_RSP, kFrame = ASSAY_REG_RBP;
  image::Executable executable_{"/proc/self/exe"};
  values::CallerRules rules_{executable_};
};

TEST_F(Rules, FollowAFramePointer) {
  EXPECT_EQ(at(assay_test_framed), (CallerRule{kStack, 0}));
  EXPECT_EQ(at(assay_test_framed_pushed), (CallerRule{kStack, 8}));
  EXPECT_EQ(at(assay_test_framed_set), (CallerRule{kFrame, 8}));
  EXPECT_EQ(at(assay_test_framed_body), (CallerRule{kFrame, 8}));
  EXPECT_EQ(at(assay_test_framed_left), (CallerRule{kStack, 0}));
}

TEST_F(Rules, FollowTheStackPointer) {
  EXPECT_EQ(at(assay_test_frameless), (CallerRule{kStack, 0}));
  EXPECT_EQ(at(assay_test_frameless_body), (CallerRule{kStack, 40}));
  EXPECT_EQ(at(assay_test_frameless_pushed), (CallerRule{kStack, 48}));
  EXPECT_EQ(at(assay_test_frameless_early), (CallerRule{kStack, 0}));
  EXPECT_EQ(at(assay_test_frameless_restored), (CallerRule{kStack, 48}));
}

TEST_F(Rules, FollowAnyRegister) {
  EXPECT_EQ(at(assay_test_realigned), (CallerRule{kStack, 0}));
  EXPECT_EQ(at(assay_test_realigned_body), (CallerRule{10, -8}));
}

TEST_F(Rules, SayNothingOfWhatIsNotKnown) {
  EXPECT_EQ(at(assay_test_expression_body), std::nullopt);
  EXPECT_EQ(at(assay_test_signal_body), std::nullopt);
  EXPECT_EQ(at(assay_test_untold), std::nullopt);
  EXPECT_EQ(rules_.at(0), std::nullopt);
  EXPECT_EQ(rules_.at(~uint64_t(0)), std::nullopt);
}

} // namespace
