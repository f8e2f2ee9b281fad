// What sampled values tell to change, and what is always the same without telling anything.
#include "analyze/values.h"

#include "abi/samples.h"
#include "analyze/deciding_load.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <utility>

namespace {

using analyze::ValuesResult;

analyze::ValueList always(unsigned kind, uint64_t value) {
  analyze::ValueList list;
  list.kind = kind;
  list.subject = "load";
  list.values = list.samples = 1000;
  list.hot = {{value, 1, .9999, 1, ""}};
  return list;
}

// One function with one instruction, at which `value` came in every sample, and the next one.
std::vector<analyze::Finding> findings_of(const char *text, unsigned kind, uint64_t value,
                                          const char *next = "", const char *name = "work",
                                          std::vector<analyze::ValueList> of_next = {},
                                          const char *path = "/usr/bin/app") {
  analyze::ValueInstruction instruction;
  instruction.offset = 0x1234;
  instruction.text = text;
  instruction.interrupts = instruction.executions = 1000;
  instruction.lists = {always(kind, value)};
  analyze::ValueFunction function;
  function.name = name;
  function.module_path = path;
  function.interrupts = function.executions = 1000;
  function.instructions = {instruction};
  function.instructions.emplace_back().text = next;
  function.instructions.back().lists = std::move(of_next);
  ValuesResult result;
  result.samples = 1000;
  result.functions = {function};
  return analyze::value_findings(result);
}

std::string rules_of(const char *text, unsigned kind, uint64_t value, const char *next = "",
                     const char *name = "work") {
  std::string rules;
  for (const analyze::Finding &finding : findings_of(text, kind, value, next, name))
    rules += finding.rule + " " + finding.location + ";";
  return rules;
}

TEST(ValueFindings, NameTheInstructionAsDisassemblersDo) {
  EXPECT_EQ(rules_of("mov eax, [rbx]", ASSAY_VALUE_load, 7),
            "same_load work at 0x1234 (mov eax, [rbx]);");
  EXPECT_EQ(rules_of("mov rax, [rbx]", ASSAY_VALUE_load, 0),
            "same_load work at 0x1234 (mov rax, [rbx]);");
  EXPECT_EQ(rules_of("div rcx", ASSAY_VALUE_divisor, 60), "same_divisor work at 0x1234 (div rcx);");
  EXPECT_EQ(rules_of("push rbx", ASSAY_VALUE_argument, 2),
            "same_argument work at 0x1234 (push rbx);");
}

// Nobody changes its code: one finding of a function, which says what its callers can do, and counts less.
TEST(ValueFindings, OfTheCLibraryAreForItsCallers) {
  const auto own = findings_of("mov eax, [rbx]", ASSAY_VALUE_load, 255, "mov ecx, [rbx+0x4]",
                               "localeconv", {always(ASSAY_VALUE_load, 46)});
  ASSERT_EQ(own.size(), 2u);
  const auto library =
      findings_of("mov eax, [rbx]", ASSAY_VALUE_load, 255, "mov ecx, [rbx+0x4]", "localeconv",
                  {always(ASSAY_VALUE_load, 46)}, "/usr/lib/x86_64-linux-gnu/libc.so.6");
  ASSERT_EQ(library.size(), 1u);
  EXPECT_LT(library.front().weight, own.front().weight / 2);
  EXPECT_EQ(library.front().action,
            "the code is the C library's: call `localeconv` less often, and keep what it gives");
}

TEST(ValueFindings, SayNothingOfAddresses) {
  for (uint64_t address :
       {0x205e260005b9ul, 0x555555554000ul, 0x7ffff7fc1000ul, 0x7fff313986b0ul}) {
    EXPECT_EQ(rules_of("mov rax, [rbx]", ASSAY_VALUE_load, address), "") << address;
    EXPECT_EQ(rules_of("push rbx", ASSAY_VALUE_argument, address), "") << address;
  }
  EXPECT_NE(rules_of("mov rax, [rbx]", ASSAY_VALUE_load, ~uint64_t(0)), "");
}

// Code in which some instructions load a value that is always the same, and the last one is a
// branch that is always taken.
analyze::ValueFunction
branching(std::initializer_list<std::pair<const char *, std::optional<uint64_t>>> code) {
  analyze::ValueFunction function;
  function.name = "work";
  function.interrupts = 1000;
  for (const auto &[text, loaded] : code) {
    analyze::ValueInstruction &at = function.instructions.emplace_back();
    at.text = text;
    at.offset = 4 * function.instructions.size();
    at.length = 4;
    at.executions = 1000;
    if (loaded)
      at.lists = {always(ASSAY_VALUE_load, *loaded)};
  }
  function.instructions.back().lists = {always(ASSAY_VALUE_branch, 1)};
  return function;
}

size_t same_branches(const analyze::ValueFunction &function) {
  ValuesResult result;
  result.samples = 1000;
  result.functions = {function};
  size_t found = 0;
  for (const analyze::Finding &finding : analyze::value_findings(result))
    found += finding.rule == "same_branch";
  return found;
}

// The compiler's own test of which function a pointer is to: always the same way, by an address.
TEST(ValueFindings, SayNothingOfBranchesThatAddressesDecide) {
  auto branches = [](uint64_t loaded) {
    return same_branches(
        branching({{"mov rax, [rax+0x10]", loaded}, {"test rax, rax", {}}, {"jz 0x1240", {}}}));
  };
  EXPECT_EQ(branches(7), 1u);
  EXPECT_EQ(branches(0x5577d4fc9dc0), 0u);
}

TEST(ValueFindings, NameTheLoadThatDecidesABranch) {
  auto decides = [](std::initializer_list<std::pair<const char *, std::optional<uint64_t>>> code) {
    const analyze::ValueFunction function = branching(code);
    const analyze::ValueList *load =
        analyze::deciding_load(function, function.instructions.size() - 1);
    return load ? load->hot.front().value : 0;
  };
  EXPECT_EQ(decides({{"cmp dword ptr [rdi], 0x0", 3}, {"jnz 0x10", {}}}), 3u);
  EXPECT_EQ(
      decides(
          {{"mov r8d, [rdi]", 4}, {"add rcx, 0x1", {}}, {"cmp r8d, 0x7", {}}, {"jnz 0x10", {}}}),
      4u);
  EXPECT_EQ(decides({{"movzx eax, byte ptr [rdi]", 5}, {"test al, al", {}}, {"jz 0x10", {}}}), 5u);
  // for (; q; q = q->next) sum += q->value: the values are all alike, but the pointer decides.
  EXPECT_EQ(decides({{"add rax, [rdi+0x8]", 5},
                     {"mov rdi, [rdi]", {}},
                     {"test rdi, rdi", {}},
                     {"jnz 0x10", {}}}),
            0u);
  EXPECT_EQ(decides({{"mov rdx, [rcx]", 11}, {"cmp qword ptr [rdi], 0x0", {}}, {"jle 0x10", {}}}),
            0u);
  // Something else than a load decides, too, or it is not plain what does.
  EXPECT_EQ(decides({{"mov rax, [rcx]", 11}, {"cmp rax, rbx", {}}, {"jle 0x10", {}}}), 0u);
  EXPECT_EQ(
      decides(
          {{"mov rax, [rcx]", 11}, {"sub rax, rbx", {}}, {"test rax, rax", {}}, {"jz 0x10", {}}}),
      0u);
  EXPECT_EQ(decides({{"mov rax, [rcx]", 11}, {"dec rbx", {}}, {"jnz 0x10", {}}}), 0u);
  EXPECT_EQ(decides({{"jnz 0x10", {}}}), 0u);
  // What a call, or a division, has left in the register.
  EXPECT_EQ(
      decides(
          {{"mov eax, [rbx+0x8]", 5}, {"call rcx", {}}, {"test eax, eax", {}}, {"jz 0x10", {}}}),
      0u);
  EXPECT_EQ(decides({{"mov eax, [rbx]", 5},
                     {"cdq", {}},
                     {"idiv ecx", {}},
                     {"test eax, eax", {}},
                     {"jz 0x10", {}}}),
            0u);
  // An instruction between was not sampled.
  analyze::ValueFunction apart =
      branching({{"mov eax, [rbx]", 5}, {"test eax, eax", {}}, {"jz 0x10", {}}});
  apart.instructions[0].offset -= 2;
  EXPECT_EQ(analyze::deciding_load(apart, 2), nullptr);
}

// -7 is what the source says; a test for 4294967289 would never be met.
TEST(ValueFindings, ADivisorMayBeNegative) {
  analyze::ValueFunction function = branching({{"idiv esi", {}}});
  function.instructions[0].lists = {always(ASSAY_VALUE_divisor, 0xfffffff9)};
  function.instructions[0].lists[0].bytes = 4;
  ValuesResult result;
  result.samples = 1000;
  result.functions = {function};
  const auto findings = analyze::value_findings(result);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].message.find("divides by -7 in"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[0].action.find("test for -7 first"), std::string::npos) << findings[0].action;
}

TEST(ValueFindings, SayNothingOfRegistersThatComeBackAndOfTheStackProtector) {
  for (const char *text : {"pop rbp", "leave", "ret", "mov rax, fs:[0x28]", "sub rdx, fs:[0x28]"})
    EXPECT_EQ(rules_of(text, ASSAY_VALUE_load, 7), "") << text;
  EXPECT_EQ(rules_of("mov rdx, [rsp+0x18]", ASSAY_VALUE_load, 7, "sub rdx, fs:[0x28]"), "");
  EXPECT_NE(rules_of("mov rax, fs:[0x10]", ASSAY_VALUE_load, 7), ""); // a variable of the thread's
}

// A load at which all samples wait, which L3 or memory answers with that share, with these strides.
std::string rules_of_load(double far, std::vector<analyze::ValueShare> strides,
                          uint64_t stride_samples = 1000, const char *text = "mov rax, [rax]") {
  analyze::ValueList addresses, latency;
  addresses.kind = ASSAY_VALUE_load_address;
  addresses.samples = 1000;
  addresses.strides = std::move(strides);
  addresses.stride_samples = stride_samples;
  latency.kind = ASSAY_VALUE_latency;
  latency.samples = 1000;
  latency.hot = {{1, 1 - far, 0, 1, "L1"}, {8, far, 0, 1, "memory"}};
  analyze::ValueFunction function;
  function.name = "work";
  function.interrupts = 1000;
  analyze::ValueInstruction &load = function.instructions.emplace_back();
  load.text = text;
  load.interrupts = load.executions = 1000;
  load.lists = {addresses, latency};
  ValuesResult result;
  result.samples = 1000;
  result.functions = {function};
  std::string rules;
  for (const analyze::Finding &finding : analyze::value_findings(result))
    rules += finding.rule + ";";
  return rules;
}

TEST(ValueFindings, TellLoadsThatWaitForMemoryByTheirStride) {
  const analyze::ValueShare always{64, .99, .97, 1, ""}, often{64, .9, .85, .94, ""},
      seldom{64, .3, .25, .35, ""}, near{8, .99, .97, 1, ""};
  EXPECT_EQ(rules_of_load(.9, {always}), "strided_load;");
  EXPECT_EQ(rules_of_load(.9, {seldom}), "far_load;");
  EXPECT_EQ(rules_of_load(.9, {}), "far_load;");     // each is another
  EXPECT_EQ(rules_of_load(.9, {}, 3), "");           // none is known
  EXPECT_EQ(rules_of_load(.9, {often}), "");         // it may be either
  EXPECT_EQ(rules_of_load(.9, {near}), "");          // within the line that is there
  EXPECT_EQ(rules_of_load(.01, {seldom}), "");       // it is answered at once
  EXPECT_EQ(rules_of_load(.9, {}, 1000, "ret"), ""); // nothing to lay out
}

TEST(ValueFindings, NumbersAreReadAsTheProgramMeansThem) {
  EXPECT_EQ(analyze::number_text(10, 4), "10");
  EXPECT_EQ(analyze::number_text(0xffffffff, 4), "-1");
  EXPECT_EQ(analyze::number_text(~uint64_t{0} - 6, 8), "-7");
  EXPECT_EQ(analyze::number_text(200, 1), "200");
  EXPECT_EQ(analyze::number_text(0xffff, 2), "0xffff");
  EXPECT_EQ(analyze::number_text(0xdbb8d, 4), "0xdbb8d");
}

TEST(ValueFindings, SayNothingOfTheProfilersOwnCode) {
  for (const char *name : {"assay::objects::Groups::add(int)", "__assay_fields_sample"})
    EXPECT_EQ(rules_of("mov eax, [rbx]", ASSAY_VALUE_load, 7, "", name), "") << name;
  EXPECT_NE(rules_of("mov eax, [rbx]", ASSAY_VALUE_load, 7, "", "assayer::check()"), "");
}

// A return that reads where the loop before it wrote last: all of its executions, and next to
// nothing of the function's time.
TEST(ValueFindings, AConflictWeighsWhatItsLoadIsExecuted) {
  analyze::ValueFunction function;
  function.name = "work";
  function.interrupts = 1000;
  for (uint64_t executions : {100'000, 100'000, 40}) {
    analyze::ValueInstruction &at = function.instructions.emplace_back();
    at.text = "mov eax, [rbx]";
    at.offset = 0x1000 + function.instructions.size();
    at.executions = executions;
  }
  ValuesResult result;
  result.samples = 1000;
  result.functions = {function};
  const analyze::ValueFunction &work = result.functions.front();
  for (size_t load : {1, 2}) {
    analyze::ValueConflict conflict;
    conflict.kind = 2;
    conflict.store_function = conflict.load_function = &work;
    conflict.store = &work.instructions[0];
    conflict.load = &work.instructions[load];
    conflict.count = conflict.load->executions;
    conflict.share = 1;
    result.conflicts = {conflict};
    const std::vector<analyze::Finding> findings = analyze::value_findings(result);
    ASSERT_EQ(findings.size(), load == 1 ? 1 : 0) << load;
    if (load == 1)
      EXPECT_EQ(findings[0].rule, "alias_4k");
  }
}

// One load of hundreds of instructions that its function has.
TEST(ValueFindings, OneLoadSavesLittleOfItsFunction) {
  EXPECT_NEAR(findings_of("mov eax, [rbx]", ASSAY_VALUE_load, 7).at(0).saved_share, .1, 1e-9);
  EXPECT_NEAR(findings_of("push rbx", ASSAY_VALUE_argument, 7).at(0).saved_share, .3, 1e-9);
  EXPECT_NEAR(findings_of("div rcx", ASSAY_VALUE_divisor, 60).at(0).saved_share, 1, 1e-9);
}

} // namespace
