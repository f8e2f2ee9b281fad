// A number in an instruction is taken for an address if it is made as one (relative to the instruction), or,
// in files that are not position independent, if it lies in the file's data. A text is printable bytes up to
// a zero in data that is not written.

#include "analyze/explain_names.h"

#include "base/fail.h"
#include "binary/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace analyze {
namespace {

using namespace binary;

constexpr size_t kMinText = 4, kMaxText = 48;

image::Data data_of(const std::string &path, bool lines) {
  try {
    return lines ? image::data(path) : image::Data{};
  } catch (const base::Failure &) {
    return {};
  }
}

std::string with_offset(const std::string &name, uint64_t offset) {
  return offset ? fmt::format("{}+{:#x}", name, offset) : name;
}

// The address that a micro-op makes, if it is one of the image's own.
std::optional<uint64_t> made_address(const image::Executable &executable, const assay_uop &uop) {
  if (uop.op == ASSAY_UOP_lea && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO &&
      uop.c == ASSAY_REG_ZERO)
    return static_cast<uint64_t>(int64_t{uop.i});
  bool is_constant = uop.op == ASSAY_UOP_or && uop.a == ASSAY_REG_ZERO &&
                     binary::has_immediate(uop) && uop.width >= 4;
  if (is_constant && !executable.position_independent())
    return static_cast<uint64_t>(uop.imm);
  return std::nullopt;
}

std::vector<std::string> register_names(RegisterSet set) {
  static constexpr const char *kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                           "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  std::vector<std::string> names;
  for (unsigned reg = 0; reg < 16; reg++)
    if (set & register_bit(reg))
      names.emplace_back(kNames[reg]);
  return names;
}

} // namespace

ExplainNames::ExplainNames(const image::Executable &executable, bool lines)
    : executable_(executable), lines_(lines), data_(data_of(executable.path(), lines)),
      symbols_(lines ? image::open({{std::filesystem::absolute(executable.path()).string(),
                                     executable.build_id()}})
                     : image::open({})) {}

std::string ExplainNames::object_at(uint64_t address) const {
  const image::DataSymbol *symbol = data_.symbol_at(address);
  return symbol ? with_offset(image::demangled(symbol->linkage_name), address - symbol->address)
                : "";
}

std::string ExplainNames::function_at(uint64_t address) const {
  if (auto import = executable_.import_of_stub(address); !import.empty())
    return image::demangled(std::string(import));
  const image::CodeRange *range = executable_.function_at(address);
  if (!range || range->name.empty())
    return "";
  return with_offset(image::demangled(range->name), address - range->begin);
}

std::string ExplainNames::string_at(uint64_t address) const {
  if (executable_.writable_at(address) || executable_.executable_at(address))
    return "";
  std::string text;
  for (std::byte byte : executable_.bytes_from(address)) {
    auto c = static_cast<char>(byte);
    if (c == 0)
      return text.size() >= kMinText ? "\"" + text + "\"" : "";
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (c < ' ' || c > '~')
      return "";
    else
      text += c;
    if (text.size() > kMaxText)
      return "\"" + text + "…\"";
  }
  return "";
}

std::string ExplainNames::callee_of(const FlowGraph &graph, const Instruction &instruction) const {
  if (instruction.target())
    return function_at(instruction.target());
  for (const Access &access : graph.code.accesses_of(instruction)) { // call [rip + slot]
    if (!access.has_address() || access.write)
      continue;
    const assay_uop &uop = graph.code.uops[access.uop];
    if (uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO)
      return image::demangled(
          std::string(executable_.import_of_slot(static_cast<uint64_t>(int64_t{uop.i}))));
  }
  return "";
}

std::string ExplainNames::mentioned_by(const FlowGraph &graph,
                                       const Instruction &instruction) const {
  if (instruction.flow != Flow::next)
    return "";
  for (const assay_uop &uop : graph.code.uops_of(instruction))
    if (auto address = made_address(executable_, uop)) {
      if (std::string text = string_at(*address); !text.empty())
        return text;
      if (std::string object = object_at(*address); !object.empty())
        return object;
      if (executable_.executable_at(*address))
        return function_at(*address);
    }
  return "";
}

void ExplainNames::name(const FlowGraph &graph, const Instruction &instruction, const Block *ends,
                        ExplainedLine &line) {
  line.opaque = instruction.opaque;
  line.micro_ops = instruction.uops;
  if (instruction.is_call())
    line.kept = register_names(instruction.kept);
  bool leaves = ends && (ends->leaves == instruction.target() && instruction.target() != 0);
  line.tail_call = leaves || graph.is_tail_jump(instruction);
  if (instruction.is_call() || line.tail_call)
    line.callee = callee_of(graph, instruction);
  line.mentions = mentioned_by(graph, instruction);
  if (!lines_)
    return;
  // The line of a call is asked for by where it returns to.
  const image::CallStack &frames = symbols_.call(0, instruction.address + 1);
  if (frames.begin() != frames.end()) {
    const image::Frame &innermost = *frames.begin();
    line.file = innermost.file;
    line.source_line = innermost.line;
  }
}

} // namespace analyze
