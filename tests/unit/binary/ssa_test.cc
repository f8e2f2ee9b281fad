// Single static assignment, of real routines and of made-up ones: definitions dominate uses, joins have
// an operand for each predecessor, and on random walks through the graph every use names the value
// that was made last.
//
// The walk keeps, for each variable, who defined it last, by what docs/micro-ops.md and the ABI say of
// an instruction, not by what binary/ssa.cc looks at.

#include "binary/program.h"
#include "binary/ssa.h"
#include "unit/binary/random_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unistd.h>

namespace {

using namespace binary;
using binary_test::below;
using binary_test::random_graph;

bool is_call(const Instruction &instruction) {
  return instruction.flow == Flow::call || instruction.flow == Flow::indirect_call;
}
bool is_store(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_store || uop.op == ASSAY_UOP_store_if;
}
bool has_no_value(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_jump || uop.op == ASSAY_UOP_branch || uop.op == ASSAY_UOP_opaque;
}
bool is_read(unsigned reg) {
  return reg != ASSAY_UOP_IMMEDIATE && reg != ASSAY_REG_ZERO && reg != ASSAY_REG_BIAS;
}
bool is_wide(unsigned variable) {
  return variable >= kMasks && variable < kMemory;
}
bool kept_by_call(const Instruction &call, unsigned variable) {
  bool is_state = kKeptByCalls >> variable & 1;
  return is_state || (variable < 16 && (call.kept >> variable & 1));
}

class Checked {
public:
  explicit Checked(const FlowGraph &graph) : graph_(graph), ssa_(single_assignment(graph)) {}

  void check_shape() {
    const Dominators &dominators = ssa_.dominators;
    EXPECT_EQ(ssa_.nodes[Ssa::kRoot].block, Node::kNoBlock);
    EXPECT_EQ(ssa_.nodes.size(), ssa_.successors.size());
    EXPECT_EQ(ssa_.nodes.size(), ssa_.predecessors.size());
    for (uint32_t value = 0; value < ssa_.values.size(); value++)
      EXPECT_TRUE(reachable(ssa_.values[value].node));
    for (uint32_t node = 0; node < ssa_.nodes.size(); node++) {
      if (!reachable(node))
        continue;
      check_predecessors(node);
      uint64_t joined = 0;
      for (ValueId join : ssa_.joins_of(node)) {
        const Value &value = ssa_.values[join.v];
        EXPECT_EQ(value.kind, ValueKind::join);
        EXPECT_EQ(value.node, node);
        ASSERT_LT(value.variable, kVariables);
        EXPECT_FALSE(joined & bit(value.variable)) << "two joins of a variable";
        joined |= bit(value.variable);
        auto operands = ssa_.operands(join);
        ASSERT_EQ(operands.size(), ssa_.predecessors[node].size());
        for (size_t i = 0; i < operands.size(); i++) {
          ASSERT_TRUE(operands[i].known()) << "of a join at " << node;
          EXPECT_TRUE(holds(operands[i], value.variable));
          EXPECT_TRUE(
              dominators.dominates(ssa_.values[operands[i].v].node, ssa_.predecessors[node][i]));
        }
      }
      each_uop(node, [&](uint32_t instruction, const assay_uop &uop, uint32_t at) {
        const UopValues &values = ssa_.uops[at];
        for (ValueId used : {values.a, values.b, values.c})
          if (used.known())
            check_dominates(used, node, instruction, uop_index(uop));
        if (values.result.known()) {
          const Value &made = ssa_.values[values.result.v];
          EXPECT_EQ(made.kind, ValueKind::micro_op);
          EXPECT_EQ(std::pair(made.node, ssa_.instruction_of(graph_, made)),
                    std::pair(node, instruction));
          EXPECT_EQ(made.uop, uop_index(uop));
        }
      });
    }
  }

  // Paths of the graph, followed in the nodes.
  void walk(std::mt19937_64 &random, unsigned steps) {
    for (uint32_t variable = 0; variable < kVariables; variable++)
      last_[variable] = {ValueKind::entry, Ssa::kRoot, 0, variable};
    uint32_t block = Node::kNoBlock, node = Ssa::kRoot;
    for (unsigned step = 0; step < steps; step++) {
      const auto &ways = block == Node::kNoBlock ? graph_.entries : graph_.blocks[block].successors;
      if (ways.empty())
        return;
      block = ways[below(random, ways.size())];
      if (graph_.blocks[block].is_dispatch()) {
        const auto &labels = graph_.blocks[block].successors;
        block = labels[below(random, labels.size())];
      }
      std::vector<uint32_t> way;
      ASSERT_TRUE(find_way(node, block, way)) << "no way on to block " << block;
      for (uint32_t next : way) {
        enter(node, next);
        node = next;
      }
      execute(node);
      if (testing::Test::HasFailure())
        return;
    }
  }

  size_t uses() const { return uses_; }
  const Ssa &ssa() const { return ssa_; }

private:
  struct Made {
    ValueKind kind;
    uint32_t node, instruction;
    uint32_t what; // the variable of an entry or a join, the micro-op
  };

  bool reachable(uint32_t node) const { return ssa_.dominators.number[node] != Dominators::kNone; }
  uint32_t uop_index(const assay_uop &uop) const {
    return static_cast<uint32_t>(&uop - graph_.code.uops.data());
  }
  template <class Visit> void each_uop(uint32_t node, Visit visit) const {
    if (ssa_.nodes[node].block == Node::kNoBlock)
      return;
    const Block &block = graph_.blocks[ssa_.nodes[node].block];
    uint32_t at = ssa_.nodes[node].first_uop;
    for (uint32_t i = block.first; i < block.first + block.count; i++)
      for (const assay_uop &uop : graph_.code.uops_of(graph_.code.instructions[i]))
        visit(i, uop, at++);
  }

  // Whether a value may stand for a variable: one value for all vectors and masks that a call leaves.
  bool holds(ValueId id, unsigned variable) const {
    const Value &value = ssa_.values[id.v];
    bool one_for_all = value.kind == ValueKind::call || value.kind == ValueKind::opaque;
    return value.variable == variable ||
           (one_for_all && is_wide(value.variable) && is_wide(variable));
  }

  void check_predecessors(uint32_t node) {
    auto from = ssa_.predecessors[node];
    size_t edges = 0;
    for (uint32_t other = 0; other < ssa_.nodes.size(); other++)
      if (reachable(other))
        edges += static_cast<size_t>(
            std::count(ssa_.successors[other].begin(), ssa_.successors[other].end(), node));
    EXPECT_EQ(from.size(), edges);
    for (uint32_t each : from)
      EXPECT_TRUE(reachable(each) &&
                  std::find(ssa_.successors[each].begin(), ssa_.successors[each].end(), node) !=
                      ssa_.successors[each].end());
  }

  void check_dominates(ValueId used, uint32_t node, uint32_t instruction, uint32_t uop) {
    const Value &value = ssa_.values[used.v];
    if (value.node != node) {
      EXPECT_TRUE(ssa_.dominators.dominates(value.node, node));
      return;
    }
    switch (value.kind) {
    case ValueKind::entry:
    case ValueKind::join: break;
    case ValueKind::micro_op:
      EXPECT_LE(ssa_.instruction_of(graph_, value), instruction);
      EXPECT_LT(value.uop, uop);
      break;
    case ValueKind::call:
    case ValueKind::opaque: EXPECT_LT(value.instruction, instruction);
    }
  }

  // The nodes from behind `node` to one of `block`; those between have none: a dispatch, what is before
  // loops.
  bool find_way(uint32_t node, uint32_t block, std::vector<uint32_t> &way) const {
    for (uint32_t to : ssa_.successors[node]) {
      if (way.size() > 4)
        return false;
      way.push_back(to);
      if (ssa_.nodes[to].block == block ||
          (ssa_.nodes[to].block == Node::kNoBlock && find_way(to, block, way)))
        return true;
      way.pop_back();
    }
    return false;
  }

  void enter(uint32_t from, uint32_t node) {
    const auto &predecessors = ssa_.predecessors[node];
    auto edge = std::find(predecessors.begin(), predecessors.end(), from) - predecessors.begin();
    ASSERT_LT(static_cast<size_t>(edge), predecessors.size());
    for (ValueId join : ssa_.joins_of(node))
      expect_last(ssa_.operands(join)[static_cast<size_t>(edge)], ssa_.values[join.v].variable);
    for (ValueId join : ssa_.joins_of(node)) {
      uint32_t variable = ssa_.values[join.v].variable;
      last_[variable] = {ValueKind::join, node, 0, variable};
    }
  }

  void expect_last(ValueId used, unsigned variable) {
    uses_++;
    ASSERT_TRUE(used.known()) << "variable " << variable;
    const Value &value = ssa_.values[used.v];
    const Made &last = last_[variable];
    EXPECT_TRUE(holds(used, variable));
    EXPECT_EQ(value.kind, last.kind) << "variable " << variable;
    EXPECT_EQ(value.node, last.node) << "variable " << variable;
    if (value.kind == ValueKind::micro_op)
      EXPECT_EQ(value.uop, last.what) << "variable " << variable;
    else if (value.kind == ValueKind::call || value.kind == ValueKind::opaque)
      EXPECT_EQ(value.instruction, last.instruction) << "variable " << variable;
    else
      EXPECT_EQ(value.variable, last.what);
  }

  void expect_read(ValueId used, unsigned reg) {
    if (!is_read(reg)) {
      EXPECT_FALSE(used.known());
      return;
    }
    unsigned variable = variable_of(reg);
    if (variable < kVariables) {
      expect_last(used, variable);
      return;
    }
    uses_++;
    auto made = temporaries_.find(reg);
    ASSERT_TRUE(used.known() && made != temporaries_.end()) << "temporary " << reg;
    EXPECT_EQ(ssa_.values[used.v].uop, made->second);
  }

  void execute(uint32_t node) {
    uint32_t previous = UINT32_MAX;
    Made stack_pointer{};
    auto finish = [&] {
      if (previous == UINT32_MAX)
        return;
      const Instruction &done = graph_.code.instructions[previous];
      for (uint32_t variable = 0; variable < kVariables; variable++) {
        if (graph_.code.touched_by(done).writes & bit(variable))
          last_[variable] = {ValueKind::opaque, node, previous, 0};
        bool moved = variable == kFs && done.moves_fs;
        if (is_call(done) && (!kept_by_call(done, variable) || moved))
          last_[variable] = {ValueKind::call, node, previous, 0};
      }
      if (is_call(done) && kept_by_call(done, ASSAY_REG_RSP)) // its return pops what it has pushed
        last_[ASSAY_REG_RSP] = stack_pointer;
    };
    const Block &block = graph_.blocks[ssa_.nodes[node].block];
    uint32_t at = ssa_.nodes[node].first_uop;
    for (uint32_t i = block.first; i < block.first + block.count; i++) {
      finish();
      previous = i;
      stack_pointer = last_[ASSAY_REG_RSP];
      temporaries_.clear();
      for (const assay_uop &uop : graph_.code.uops_of(graph_.code.instructions[i]))
        execute(node, i, uop, at++);
    }
    finish();
  }

  void execute(uint32_t node, uint32_t instruction, const assay_uop &uop, uint32_t at) {
    const UopValues &values = ssa_.uops[at];
    expect_read(values.a, uop.a);
    expect_read(values.b, uop.b);
    if (uop.b != ASSAY_UOP_IMMEDIATE)
      expect_read(values.c, uop.c);
    if (has_no_value(uop)) {
      EXPECT_FALSE(values.result.known());
      return;
    }
    unsigned variable = is_store(uop) ? unsigned{kMemory} : variable_of(uop.dst);
    ASSERT_TRUE(values.result.known());
    EXPECT_EQ(ssa_.values[values.result.v].variable, variable);
    if (variable < kVariables)
      last_[variable] = {ValueKind::micro_op, node, instruction, uop_index(uop)};
    else
      temporaries_[uop.dst] = uop_index(uop);
  }

  const FlowGraph &graph_;
  Ssa ssa_;
  std::array<Made, kVariables> last_;
  std::map<unsigned, uint32_t> temporaries_; // by register: the micro-op
  size_t uses_ = 0;
};

// Adds random instructions of a few variables, so that they meet, to a graph.
class InstructionMaker {
public:
  InstructionMaker(std::mt19937_64 &random, FlowGraph &graph) : random_(random), graph_(graph) {}

  void add() {
    Instruction instruction;
    instruction.uop = static_cast<uint32_t>(graph_.code.uops.size());
    made_[0] = made_[1] = false;
    if (below(random_, 12) == 0)
      become_call(instruction);
    for (unsigned more = below(random_, 4); more; more--) {
      add_uop();
      instruction.uops++;
    }
    if (instruction.flow == Flow::next && below(random_, 12) == 0) {
      instruction.opaque = true;
      instruction.operand = static_cast<uint32_t>(graph_.code.touched.size());
      const VariableSet all = bit(kVariables) - 1;
      graph_.code.touched.push_back({random_() & all, random_() & random_() & all});
    }
    graph_.code.instructions.push_back(instruction);
  }

private:
  static constexpr uint16_t kRegisters[] = {ASSAY_REG_RAX,
                                            ASSAY_REG_RBX,
                                            ASSAY_REG_RSP,
                                            ASSAY_REG_FLAGS,
                                            ASSAY_REG_LANES,
                                            ASSAY_REG_LANES + 9,
                                            ASSAY_REG_TEMPORARIES,
                                            ASSAY_REG_ZERO,
                                            ASSAY_REG_BIAS,
                                            ASSAY_REG_MASKS + 1,
                                            ASSAY_REG_TEMPORARIES + 1};

  static bool is_temporary(uint16_t reg) {
    return reg == ASSAY_REG_TEMPORARIES || reg == ASSAY_REG_TEMPORARIES + 1;
  }

  // A register that has a value.
  uint16_t some() {
    for (;;) {
      const uint16_t reg = kRegisters[below(random_, std::size(kRegisters))];
      if (!is_temporary(reg) || made_[reg - ASSAY_REG_TEMPORARIES])
        return reg;
    }
  }

  void become_call(Instruction &instruction) {
    instruction.flow = below(random_, 2) ? Flow::call : Flow::indirect_call;
    instruction.moves_fs = below(random_, 4) == 0;
    assay_uop push{}; // as calls begin; afterwards the stack pointer is what it was before
    push.op = ASSAY_UOP_sub;
    push.width = 8;
    push.dst = push.a = ASSAY_REG_RSP;
    push.b = ASSAY_UOP_IMMEDIATE;
    push.imm = 8;
    graph_.code.uops.push_back(push);
    instruction.uops = 1;
  }

  void add_uop() {
    static constexpr uint8_t kOps[] = {ASSAY_UOP_add,   ASSAY_UOP_select, ASSAY_UOP_load,
                                       ASSAY_UOP_store, ASSAY_UOP_lea,    ASSAY_UOP_copy};
    assay_uop uop{};
    uop.op = kOps[below(random_, std::size(kOps))];
    uop.width = 8;
    uop.a = some();
    uop.b = some();
    uop.c = some();
    if (below(random_, 4) == 0) {
      uop.b = ASSAY_UOP_IMMEDIATE;
      uop.imm = static_cast<int64_t>(random_());
    }
    if (uop.op == ASSAY_UOP_store) {
      uop.dst = some();
    } else {
      do
        uop.dst = kRegisters[below(random_, std::size(kRegisters))];
      while (!is_read(uop.dst));
      if (is_temporary(uop.dst))
        made_[uop.dst - ASSAY_REG_TEMPORARIES] = true;
    }
    graph_.code.uops.push_back(uop);
  }

  std::mt19937_64 &random_;
  FlowGraph &graph_;
  bool made_[2] = {}; // temporaries of this instruction
};

// Random instructions on a random graph.
FlowGraph made_up(std::mt19937_64 &random) {
  FlowGraph graph;
  const Edges edges = random_graph(random);
  InstructionMaker maker(random, graph);
  for (const auto &to : edges) {
    Block block;
    block.first = static_cast<uint32_t>(graph.code.instructions.size());
    block.count = 1 + below(random, 4);
    block.successors = to;
    for (uint32_t i = 0; i < block.count; i++)
      maker.add();
    graph.blocks.push_back(std::move(block));
  }
  for (uint32_t from = 0; from < edges.size(); from++)
    for (uint32_t to : edges[from])
      graph.blocks[to].predecessors.push_back(from);
  graph.entries.push_back(0);
  for (uint32_t i = below(random, 3); i; i--)
    graph.entries.push_back(below(random, edges.size()));
  return graph;
}

TEST(Ssa, OfMadeUpRoutines) {
  std::mt19937_64 random(1);
  size_t uses = 0, copies = 0;
  for (unsigned i = 0; i < 1500; i++) {
    SCOPED_TRACE("routine " + std::to_string(i));
    FlowGraph graph = made_up(random);
    Checked checked(graph);
    checked.check_shape();
    for (unsigned walk = 0; walk < 8; walk++)
      checked.walk(random, 60);
    uses += checked.uses();
    copies += checked.ssa().nodes.size() > 2 * graph.blocks.size();
    if (HasFailure())
      return;
  }
  EXPECT_GT(uses, 500'000u);
  EXPECT_GT(copies, 20u); // irregular ones are among them
}

// Returns how many routines were looked at.
size_t check_routines(const std::string &path, size_t most, unsigned walks) {
  Program program{image::Executable(path)};
  Decoder decoder;
  std::mt19937_64 random(2);
  size_t looked_at = 0;
  size_t every = std::max<size_t>(1, program.routines().size() / most);
  for (size_t i = 0; i < program.routines().size(); i += every) {
    const Routine &routine = program.routines()[i];
    FlowGraph graph = flow_graph(program, routine, decoder);
    if (graph.blocks.empty() || graph.code.instructions.size() > 5000)
      continue;
    SCOPED_TRACE(path + ": " + routine.name());
    Checked checked(graph);
    checked.check_shape();
    for (unsigned walk = 0; walk < walks; walk++)
      checked.walk(random, 100);
    looked_at++;
    if (testing::Test::HasFailure())
      break;
  }
  return looked_at;
}

TEST(Ssa, OfThisProgram) {
  EXPECT_GT(check_routines("/proc/self/exe", 400, 5), 200u);
}

// Loops, a switch, calls, floating point, a loop that is entered in its middle.
constexpr const char *kProgram = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static double table[64][64];
int irregular(int n, int *p) {
  int sum = 0;
  if (n & 1) goto middle;
  for (;;) {
    sum += *p++;
    if (sum > 1000) break;
  middle:
    sum ^= n--;
    if (n < 0) return sum;
  }
  return sum + 1;
}
int state(const char *s) {
  int at = 0;
  for (; *s; s++)
    switch (*s) {
    case 'a': at += 3; break;
    case 'b': at ^= 5; break;
    case 'c': at <<= 1; continue;
    case 'd': at -= 7; break;
    case 'e': return at;
    case 'f': s++; if (!*s) return -1; break;
    default: at++;
    }
  return at;
}
double smooth(int n) {
  double sum = 0;
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++)
      sum += table[i][j] = (table[i - 1][j] + table[i + 1][j] + table[i][j - 1]) / 3;
  return sum;
}
unsigned hash(const unsigned char *p, size_t n) {
  unsigned h = 2166136261u;
  while (n--)
    h = (h ^ *p++) * 16777619u;
  return h;
}
int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
  int values[100];
  for (int i = 0; i < 100; i++)
    values[i] = rand() % (argc + 10);
  qsort(values, 100, sizeof *values, compare);
  char text[200];
  memset(text, 'a' + argc, sizeof text - 1);
  text[199] = 0;
  printf("%d %d %g %u %s\n", irregular(argc, values), state(text), smooth(64), hash((void *)text, 199), argv[0]);
  return 0;
}
)";

TEST(Ssa, OfCompiledPrograms) {
  auto folder = std::filesystem::temp_directory_path() /
                ("assay_ssa_test." + std::to_string(static_cast<unsigned long>(getpid())));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.c") << kProgram;
  for (const char *flags : {"-O0", "-O2", "-O3 -mavx2"}) {
    SCOPED_TRACE(flags);
    std::string command =
        "gcc " + std::string(flags) + " -w a.c -o a || clang-22 " + flags + " -w a.c -o a";
    command = "cd " + folder.string() + " && (" + command + ") 2>errors";
    if (std::system(command.c_str()) != 0) {
      if (const char *require = std::getenv("ASSAY_REQUIRE");
          require && std::string(require) == "all")
        ADD_FAILURE() << "this machine lacks what tests need: gcc";
      std::filesystem::remove_all(folder);
      GTEST_SKIP() << "no C compiler";
    }
    EXPECT_GT(check_routines((folder / "a").string(), 1000, 40), 6u);
  }
  std::filesystem::remove_all(folder);
}

} // namespace
