// What assay explain says of a hand-made analysis, as text and as JSON.

#include "report/explain.h"

#include "base/fail.h"

#include <gtest/gtest.h>

#include <sstream>

namespace {

using analyze::ExplainedAccess;
using analyze::ExplainedFunction;
using analyze::ExplainedLine;
using analyze::Explanation;
using report::Style;

constexpr const char *kLongForm =
    "0xe294b88 + 8*J + 30416*I + 128*zx4(rdi.0 + 4*I) + 4096*(rsi.0 + 7*J)";

ExplainedLine line(uint64_t pc, const std::string &text, unsigned depth) {
  ExplainedLine made;
  made.pc = pc;
  made.text = text;
  made.depth = depth;
  return made;
}

ExplainedLine branch(uint64_t pc, const std::string &text, unsigned depth,
                     const std::string &condition) {
  ExplainedLine made = line(pc, text, depth);
  made.is_branch = true;
  made.condition = condition;
  return made;
}

analyze::ExplainedLoop loop(uint64_t header, const std::string &counter, uint32_t parent,
                            unsigned depth) {
  analyze::ExplainedLoop made;
  made.header = header;
  made.counter = counter;
  made.parent = parent;
  made.depth = depth;
  return made;
}

ExplainedAccess access(uint64_t pc, bool write, unsigned size, const std::string &form, bool affine,
                       unsigned depth) {
  ExplainedAccess made;
  made.pc = pc;
  made.write = write;
  made.size = size;
  made.form = form;
  made.affine = affine;
  made.depth = depth;
  return made;
}

// do J … do I … of two arrays.
ExplainedFunction nested() {
  ExplainedFunction function;
  function.name = "calc(double*)";
  function.linkage_name = "_Z4calcPd";
  function.address = 0x400ab0;
  function.bytes = 801;
  function.understood = true;
  function.loops = {loop(0x400b0a, "I", UINT32_MAX, 1), loop(0x400b3b, "J", 0, 2)};
  function.loops[1].sentence = "r14.0 iterations; 2 accesses, stride 8 B";
  function.accesses = {access(0x400b3f, false, 8, "0xe294b88 + 8*J + 30416*I", true, 2),
                       access(0x400b44, true, 8, kLongForm, false, 2),
                       access(0x400b48, false, 32, "", false, 1)};
  function.lines = {line(0x400ab0, "mov r14d, edi", 0),
                    line(0x400b0a, "xor esi, esi", 1),
                    line(0x400b3b, "lea r11d, [rsi+1]", 2),
                    line(0x400b3f, "movsd xmm0, qword ptr [rax+r9*8]", 2),
                    line(0x400b44, "movsd qword ptr [rax+rdx*8+0x3e68b090], xmm0", 2),
                    branch(0x400b46, "jnz 0x400b3b", 2, "1 + J - r14.0 != 0"),
                    line(0x400b48, "vmovups ymm1, ymmword ptr [rcx]", 1),
                    branch(0x400b4d, "jnz 0x400b0a", 1, ""),
                    line(0x400b4f, "ret", 0)};
  function.lines[1].loop = 0;
  function.lines[2].loop = 1;
  function.lines[1].block_begins = function.lines[2].block_begins = true;
  function.lines[3].accesses = {0};
  function.lines[4].accesses = {1};
  function.lines[6].accesses = {2};
  function.definitions = {{"r14.0", 0x400ab0, "argument", false},
                          {"rsi.3", 0x400b3f, "load", true}};
  function.figures = {.code_bytes = 801,
                      .reached_bytes = 700,
                      .instructions = 9,
                      .opaque_instructions = 0,
                      .loops = 2,
                      .jump_tables = 0,
                      .accesses = 3,
                      .with_form = 2,
                      .affine = 1,
                      .definitions = 2,
                      .arguments = 1};
  return function;
}

ExplainedFunction not_understood() {
  ExplainedFunction function;
  function.name = "switch\xff\x1b[31m";
  function.linkage_name = function.name;
  function.address = 0x401000;
  function.bytes = 64;
  function.why_not = "unresolved_jump";
  function.why_not_meaning = "an indirect jump whose targets are not known";
  function.where = 0x401012;
  return function;
}

Explanation explanation() {
  Explanation made;
  made.path = "./swim";
  made.build_id = "c0ffee";
  made.cpu_seconds = 0.25;
  ExplainedFunction leaf;
  leaf.name = leaf.linkage_name = "leaf";
  leaf.address = 0x400800;
  leaf.bytes = 2000;
  leaf.understood = true;
  made.functions = {leaf, nested(), not_understood()};
  made.summary.functions = 3;
  made.summary.understood = 2;
  made.summary.why_not = {{"unresolved_jump", 1}};
  made.summary.meanings = {{"unresolved_jump", not_understood().why_not_meaning}};
  made.summary.figures = nested().figures;
  made.summary.figures.opaque_instructions = 1;
  return made;
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

// The line that begins with these words.
std::string line_of(const std::string &text, const std::string &words) {
  std::istringstream lines(text);
  for (std::string each; std::getline(lines, each);) {
    size_t begin = each.find_first_not_of(' ');
    if (begin != std::string::npos && each.compare(begin, words.size(), words) == 0)
      return each;
  }
  return "";
}

TEST(ExplainedFunctionText, IsTheProgramWithWhatIsKnownBesideIt) {
  std::string text = report::explained_function_text(nested(), "./swim", Style());
  EXPECT_EQ(
      text.substr(0, text.find("0x400b44")),
      "assay explain: calc(double*) in ./swim\n"
      "  linkage name _Z4calcPd\n"
      "  at 0x400ab0, 801 bytes of code, 9 instructions, understood\n"
      "  2 loops; 3 memory accesses, 1 affine (33 %); 2 definitions to log\n"
      "\n"
      "  address    instruction                           access     its address; ? taken if\n"
      "  0x400ab0   mov r14d, edi\n"
      "             loop I = 0, 1, 2, …\n"
      "  0x400b0a:    xor esi, esi\n"
      "               loop J = 0, 1, 2, … in I\n"
      "               r14.0 iterations; 2 accesses, stride 8 B\n"
      "  0x400b3b:      lea r11d, [rsi+1]\n"
      "  0x400b3f       movsd xmm0, qword ptr [rax+r9*8]  read 8 B   0xe294b88 + 8*J + 30416*I\n"
      "  ");
  EXPECT_TRUE(has(line_of(text, "0x400b46"), "? 1 + J - r14.0 != 0")) << text;
  EXPECT_TRUE(has(line_of(text, "0x400b48"), "read 32 B  unknown")) << text;
  EXPECT_TRUE(has(line_of(text, "0x400b4d"), "? unknown")) << text;
  EXPECT_TRUE(has(text, "  r14.0  0x400ab0  argument\n")) << text;
}

TEST(ExplainedFunctionText, WrapsAndCutsNothing) {
  for (unsigned width : {80u, 100u, 160u}) {
    Style style;
    style.width = width;
    std::string text = report::explained_function_text(nested(), "./swim", style);
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);)
      EXPECT_LE(report::columns_of(each), width) << each;
    EXPECT_FALSE(has(text, "x…"));
    EXPECT_TRUE(has(text, "movsd qword ptr [rax+rdx*8+0x3e68b090], xmm0")) << text;
    std::string words; // of the form, however it is broken
    std::istringstream all(text.substr(text.find("write 8 B") + 9));
    for (std::string word; all >> word && word != "0x400b46";)
      words += (words.empty() ? "" : " ") + word;
    EXPECT_EQ(words, std::string(kLongForm) + " (not affine)") << text;
  }
}

TEST(ExplainedFunctionText, ColoursOnlyWhatIsUnknownAndHeadings) {
  Style style;
  style.colour = true;
  std::string text = report::explained_function_text(nested(), "./swim", style);
  EXPECT_TRUE(has(text, "\x1b[2m? unknown\x1b[0m"));
  EXPECT_TRUE(has(text, "\x1b[1mloop J\x1b[0m"));
  EXPECT_FALSE(has(report::explained_function_text(nested(), "./swim", Style()), "\x1b"));
}

TEST(ExplainedFunctionText, SaysWhyAFunctionIsNotUnderstood) {
  std::string text = report::explained_function_text(not_understood(), "./swim", Style());
  EXPECT_EQ(text,
            "assay explain: switch??[31m in ./swim\n"
            "  at 0x401000, 64 bytes of code, 0 instructions\n"
            "  not understood: unresolved_jump at 0x401012: an indirect jump whose targets are "
            "not known\n");
}

TEST(ExplainText, SummaryFirstThenFunctionsThenThoseNotUnderstood) {
  std::string text = report::explain_text(explanation(), {}, Style());
  size_t summary = text.find("How much of it is understood?");
  size_t functions = text.find("Which functions have the most memory accesses?");
  size_t left = text.find("Which functions are not understood?");
  ASSERT_NE(left, std::string::npos) << text;
  EXPECT_LT(summary, functions);
  EXPECT_LT(functions, left);
  EXPECT_TRUE(has(text, "build id c0ffee; the analysis took 250 ms of CPU time"));
  EXPECT_TRUE(has(line_of(text, "understood"), " 2   67 %")) << text;
  EXPECT_TRUE(
      has(line_of(text, "unresolved_jump"), "an indirect jump whose targets are not known"));
  EXPECT_TRUE(has(line_of(text, "definitions to log"), "1.00 for each access with a form")) << text;
  EXPECT_TRUE(has(line_of(text, "values to log"), " 3         all of them: 1.00 for each access"))
      << text;
  EXPECT_TRUE(has(text.substr(left), "  0x401000  64 B  unresolved_jump  0x401012  switch??[31m\n"))
      << text;
  EXPECT_FALSE(has(text, "0x400b3f")); // no instructions unless they are asked for
}

TEST(ExplainText, OrdersFiltersAndCuts) {
  report::ExplainTextOptions options;
  auto first_row = [&] {
    std::string text = report::explain_text(explanation(), options, Style());
    size_t heading = text.find("address", text.find("?\n", text.find("\nWhich functions")));
    size_t row = text.find("0x", heading);
    return text.substr(row, 8);
  };
  for (auto [key, address] : {std::pair("", "0x400ab0"),
                              {"accesses", "0x400ab0"},
                              {"affine", "0x400ab0"},
                              {"definitions", "0x400ab0"},
                              {"loops", "0x400ab0"},
                              {"size", "0x400800"},
                              {"address", "0x400800"}}) {
    options.query.sort = key;
    EXPECT_EQ(first_row(), address) << key;
  }
  options.top = 1;
  EXPECT_TRUE(has(report::explain_text(explanation(), options, Style()), "2 more"));
  options.query.filter = "^_Z4"; // linkage names count
  std::string text = report::explain_text(explanation(), options, Style());
  EXPECT_TRUE(has(text, "--filter left out 2 functions")) << text;
  EXPECT_FALSE(has(text, "Which functions are not understood?"));
  options.query.filter = "nobody";
  EXPECT_TRUE(has(report::explain_text(explanation(), options, Style()),
                  "--filter 'nobody' matches none of its 3 functions"));
  options.query = {"nonsense", ""};
  EXPECT_THROW(report::explain_text(explanation(), options, Style()), base::Failure);
  options.query = {"", "("};
  EXPECT_THROW(report::explain_text(explanation(), options, Style()), base::Failure);
}

TEST(ExplainText, InstructionsOfAsManyFunctionsAsAreAskedFor) {
  report::ExplainTextOptions options;
  options.lines = 1;
  std::string text = report::explain_text(explanation(), options, Style());
  EXPECT_TRUE(has(text, "\n\ncalc(double*)\n"));
  EXPECT_FALSE(has(text, "\n\nleaf\n"));
  options.lines = SIZE_MAX;
  text = report::explain_text(explanation(), options, Style());
  EXPECT_TRUE(has(text, "\n\nleaf\n"));
  EXPECT_TRUE(has(text, "\n\nswitch??[31m\n"));
}

TEST(ExplainText, AllIsNotSaidOfLess) {
  Explanation most = explanation();
  most.summary.functions = 10000;
  most.summary.understood = 9999;
  EXPECT_TRUE(has(line_of(report::explain_text(most, {}, Style()), "understood"), "99.9 %"));
  most.summary.understood = 10000;
  EXPECT_TRUE(has(line_of(report::explain_text(most, {}, Style()), "understood"), "100 %"));
  Explanation none;
  std::string text = report::explain_text(none, {}, Style());
  EXPECT_FALSE(has(text, "nan")) << text;
}

report::Json document_of(const Explanation &made, const report::FunctionQuery &query, unsigned top,
                         bool accesses) {
  std::string text;
  report::write_document(report::explain_document(made, query, top, accesses), {},
                         [&](std::string_view piece) { text += piece; });
  return report::Json::parse(text);
}

TEST(ExplainJson, HasTheDocumentedKeys) {
  report::Json json = document_of(explanation(), {}, 0, true);
  EXPECT_EQ(json["schema"], "assay.explain/1");
  EXPECT_EQ(json["program"]["path"], "./swim");
  const report::Json &summary = json["summary"];
  EXPECT_EQ(summary["functions"], 3);
  EXPECT_DOUBLE_EQ(summary["understood_share"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(summary["affine_share"], 1.0 / 3);
  EXPECT_EQ(summary["definitions_per_access"], 1.0);
  EXPECT_EQ(summary["values_per_access"], 1.0);
  EXPECT_EQ(summary["why_not"][0]["why_not"], "unresolved_jump");
  EXPECT_EQ(summary["why_not"][0]["functions"], 1);
  ASSERT_EQ(json["functions"].size(), 3u);
  const report::Json &function = json["functions"][0];
  EXPECT_EQ(function["name"], "calc(double*)");
  EXPECT_EQ(function["linkage_name"], "_Z4calcPd");
  EXPECT_EQ(function["address"], "0x400ab0");
  EXPECT_EQ(function["understood"], true);
  EXPECT_TRUE(function["why_not"].is_null());
  EXPECT_TRUE(function["where"].is_null());
  EXPECT_TRUE(function["loops"][0]["parent"].is_null());
  EXPECT_EQ(function["loops"][1]["parent"], 0);
  EXPECT_EQ(function["loops"][1]["header"], "0x400b3b");
  EXPECT_EQ(function["loops"][1]["counter"], "J");
  const report::Json &access = function["accesses"][0];
  EXPECT_EQ(access["pc"], "0x400b3f");
  EXPECT_EQ(access["text"], "movsd xmm0, qword ptr [rax+r9*8]");
  EXPECT_EQ(access["kind"], "read");
  EXPECT_EQ(access["size"], 8);
  EXPECT_EQ(access["form"], "0xe294b88 + 8*J + 30416*I");
  EXPECT_EQ(access["affine"], true);
  EXPECT_EQ(access["depth"], 2);
  EXPECT_EQ(function["accesses"][1]["kind"], "write");
  EXPECT_TRUE(function["accesses"][2]["form"].is_null());
  EXPECT_EQ(function["branches"][0]["condition"], "1 + J - r14.0 != 0");
  EXPECT_TRUE(function["branches"][1]["condition"].is_null());
  EXPECT_EQ(function["definitions"][0]["where"], "0x400ab0");
}

TEST(ExplainJson, CountsAddUpAndInvalidNamesAreNoError) {
  Explanation made = explanation();
  report::Json json = document_of(made, {"address", ""}, 0, false);
  uint64_t accesses = 0, affine = 0, understood = 0;
  for (const report::Json &function : json["functions"]) {
    accesses += function["access_count"].get<uint64_t>();
    affine += function["affine_count"].get<uint64_t>();
    understood += function["understood"].get<bool>();
    EXPECT_FALSE(function.contains("accesses"));
  }
  EXPECT_EQ(accesses, json["summary"]["accesses"]);
  EXPECT_EQ(affine, json["summary"]["affine"]);
  EXPECT_EQ(understood, json["summary"]["understood"]);
  EXPECT_EQ(json["functions"][2]["why_not"], "unresolved_jump");
  EXPECT_EQ(json["functions"][2]["where"], "0x401012");
  EXPECT_TRUE(json["functions"][2]["affine_share"].is_null());
}

TEST(ExplainJson, TopAndFilterChooseFunctionsAndLeaveTheSummary) {
  report::Json json = document_of(explanation(), {"size", ""}, 1, false);
  ASSERT_EQ(json["functions"].size(), 1u);
  EXPECT_EQ(json["functions"][0]["name"], "leaf");
  json = document_of(explanation(), {"", "leaf"}, 0, false);
  ASSERT_EQ(json["functions"].size(), 1u);
  EXPECT_EQ(json["filtered_out"]["functions"], 2);
  EXPECT_EQ(json["summary"]["functions"], 3);
}

} // namespace
