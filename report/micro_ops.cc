// abi/uops.def as a page.
//
// The list says of each micro-op only what executing it needs. The groups of the page follow from that
// and from names, which begin alike: what is an integer, what is 64 bits wide (a lane of a vector, a
// condition, flags), what needs floating point, what acts on memory and control.

#include "report/micro_ops.h"

#include "abi/uop.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace report {
namespace {

enum class Yields { integer, whole, floating, effect };

struct MicroOp {
  std::string_view name, expression, meaning;
  unsigned operands;
  Yields yields;
};

constexpr MicroOp kMicroOps[] = {
#define ASSAY_UOP(name, operands, expression, meaning)                                             \
  {#name, #expression, meaning, operands, Yields::integer},
#define ASSAY_UOP_WHOLE(name, operands, expression, meaning)                                       \
  {#name, #expression, meaning, operands, Yields::whole},
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning)                                       \
  {#name, #expression, meaning, operands, Yields::floating},
#define ASSAY_UOP_X87(name, operands, expression, meaning)                                         \
  {#name, #expression, meaning, operands, Yields::floating},
#define ASSAY_UOP_EFFECT(name, operands, expression, meaning)                                      \
  {#name, expression, meaning, operands, Yields::effect},
#include "abi/uops.def"
};
static_assert(std::size(kMicroOps) == ASSAY_UOP_COUNT);

struct Group {
  const char *heading;
  bool (*has)(const MicroOp &);
};

bool is_lane(const MicroOp &op) {
  return op.yields == Yields::whole &&
         (op.name.starts_with("lane_") || op.name.starts_with("carryless") ||
          op.name.starts_with("aes_"));
}
bool is_x87(const MicroOp &op) {
  return op.name.starts_with("x87_");
}
bool is_float(const MicroOp &op) {
  return op.name.starts_with("float_");
}
bool is_condition(const MicroOp &op) {
  return op.yields == Yields::whole && (op.name.starts_with("if_") || op.name == "string_step");
}

constexpr Group kGroups[] = {
    {"Integers of w bytes", [](const MicroOp &op) { return op.yields == Yields::integer; }},
    {"Flags",
     [](const MicroOp &op) {
       return op.yields == Yields::whole && !is_lane(op) && !is_condition(op) && !is_x87(op) &&
              !is_float(op);
     }},
    {"Conditions on flags", is_condition},
    {"Lanes of vectors", is_lane},
    {"Floating point", is_float},
    {"x87", is_x87},
    {"Memory and control",
     [](const MicroOp &op) { return op.yields == Yields::effect && !is_x87(op); }},
};

// A bar would end the cell, within code as well.
std::string cell(std::string_view text) {
  std::string result;
  for (char c : text)
    result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

} // namespace

const char *const kMicroOpTablesBegin = "<!-- begin: printed by `assay explain --micro-ops` -->";
const char *const kMicroOpTablesEnd = "<!-- end -->";

std::string micro_op_tables() {
  std::string text;
  for (const Group &group : kGroups) {
    text += fmt::format("{}### {}\n\n| name | operands | yields | which is |\n|---|---|---|---|\n",
                        text.empty() ? "" : "\n", group.heading);
    for (const MicroOp &op : kMicroOps)
      if (group.has(op))
        text += fmt::format("| `{}` | {} | `{}` | {} |\n", op.name, op.operands,
                            cell(op.expression), cell(op.meaning));
  }
  return text;
}

} // namespace report
