// Routine by routine: graph, single assignment, forms; nothing of a routine is kept but what is said
// of it, so that the analysis of a library of 100 MB needs little more memory than its largest function.
//
// A block that was copied to make a loop reducible has a form for each copy. The first one, in the order
// in which control comes to them, is shown; an access counts as affine if it is in all copies.

#include "analyze/explain.h"

#include "analyze/explain_graph.h"
#include "analyze/explain_loops.h"
#include "analyze/explain_names.h"

#include "base/divided_work.h"
#include "base/fail.h"
#include "base/stable_sort.h"
#include "binary/discovery.h"
#include "binary/needed.h"
#include "binary/program.h"
#include "image/elf.h"
#include "image/symbols.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>

namespace analyze {
namespace {

using namespace binary;

const char *what_it_is(const NeededDefinition &needed, const FlowGraph &graph, const Ssa &ssa) {
  const Value &value = ssa.values[needed.value.v];
  switch (value.kind) {
  case ValueKind::entry: return "argument";
  case ValueKind::join: return needed.need == Need::computed ? "join of known values" : "join";
  case ValueKind::call: return "result of a call";
  case ValueKind::opaque: return "result of an opaque instruction";
  case ValueKind::micro_op:
    return graph.code.uops[value.uop].op == ASSAY_UOP_load ? "load" : "computed";
  }
  return "";
}

class Explainer {
public:
  // All must outlive it.
  Explainer(const Program &program, ExplainDetail detail, const AskMovability &movability)
      : program_(program), movability_(movability), has_loops_(detail != ExplainDetail::figures),
        lines_(detail == ExplainDetail::lines), names_(program.executable(), lines_) {}

  // Of all that were explained.
  const ExplainSummary &summary() const { return summary_; }

  void explain(const Routine &routine, ExplainedFunction &to) {
    function_ = &to;
    summary_.functions++;
    function_->linkage_name = routine.name();
    function_->name = routine.name().empty() ? fmt::format("{:#x}", routine.address())
                                             : image::demangled(routine.name());
    function_->address = routine.address();
    function_->bytes = routine.bytes();
    FlowGraph graph = flow_graph(program_, routine, decoder_);
    ExplainedFigures &figures = function_->figures;
    figures.instructions = graph.code.instructions.size();
    for (const Instruction &instruction : graph.code.instructions) {
      if (instruction.opaque) {
        figures.opaque_instructions++;
        summary_.opaque[mnemonic_name(instruction.mnemonic)]++;
      }
      figures.reached_bytes += instruction.length;
    }
    figures.code_bytes = function_->bytes;
    figures.reached_bytes = std::min(figures.reached_bytes, figures.code_bytes); // some overlap
    if (graph.why_not != WhyNot::understood) {
      function_->why_not = why_not_name(graph.why_not);
      function_->why_not_meaning = why_not_meaning(graph.why_not);
      function_->where = graph.where;
      summary_.why_not[function_->why_not]++;
      summary_.meanings[function_->why_not] = function_->why_not_meaning;
    } else {
      function_->understood = true;
      summary_.understood++;
      figures.jump_tables = graph.tables.size();
      Ssa ssa = single_assignment(graph);
      Forms forms(graph, ssa);
      explain(graph, ssa, forms);
    }
    function_->immovable = movability_(routine, graph);
    if (lines_ && function_->understood)
      explain_graph(graph, *function_);
    summary_.figures.add(figures);
  }

private:
  void explain(const FlowGraph &graph, const Ssa &ssa, Forms &forms) {
    explain_loops(graph, ssa, forms);
    std::vector<ExprId> addresses;
    explained_.assign(graph.blocks.size(), false);
    accesses_.assign(graph.code.accesses.size(), {});
    if (lines_)
      function_->accesses.resize(accesses_.size());
    for (uint32_t node : ssa.dominators.order)
      if (ssa.nodes[node].block != Node::kNoBlock)
        explain_node(graph, ssa, forms, node, addresses);
    if (lines_)
      sort_lines();
    explain_definitions(graph, ssa, forms, addresses);
    count_in_loops(graph, ssa, accesses_, *function_);
    if (lines_)
      say_of_loops(graph, ssa, forms, *function_);
    ExplainedFigures &figures = function_->figures;
    for (const AccessInLoops &access : accesses_) {
      figures.with_form += access.has_form;
      figures.affine += access.affine;
      bool counts = access.depth > 0 && !access.stack;
      figures.in_loops += counts;
      figures.affine_in_loops += counts && access.affine;
    }
    if (!has_loops_)
      function_->loops = std::vector<ExplainedLoop>(); // assigning {} would keep their memory
  }

  void explain_loops(const FlowGraph &graph, const Ssa &ssa, const Forms &forms) {
    for (uint32_t i = 0; i < ssa.loops.all.size(); i++) {
      const binary::Loop &loop = ssa.loops.all[i];
      ExplainedLoop explained;
      explained.header = ssa.first_address(graph, loop.header);
      explained.counter = loop.irreducible ? "" : forms.counter_name(i);
      explained.parent = loop.parent;
      explained.depth = loop.depth;
      function_->loops.push_back(explained);
    }
    function_->figures.loops = ssa.loops.all.size();
  }

  void explain_node(const FlowGraph &graph, const Ssa &ssa, Forms &forms, uint32_t node,
                    std::vector<ExprId> &addresses) {
    uint32_t at = ssa.nodes[node].first_uop;
    const Block &block = graph.blocks[ssa.nodes[node].block];
    const bool is_copy = explained_[ssa.nodes[node].block];
    explained_[ssa.nodes[node].block] = true;
    for (uint32_t i = 0; i < block.count; i++) {
      const Instruction &instruction = graph.code.instructions[block.first + i];
      uint32_t number = instruction.access;
      if (!is_copy)
        function_->figures.accesses += instruction.accesses;
      for (const Access &access : graph.code.accesses_of(instruction)) {
        AccessInLoops found = {.depth = ssa.loops.depth_of(node),
                               .loop = ssa.loops.innermost[node]};
        ExprId form;
        if (access.has_address()) {
          form =
              forms.address(node, at + access.uop - instruction.uop, graph.code.uops[access.uop]);
          addresses.push_back(form);
          found.has_form = true;
          found.affine = forms.affine(form, node);
          forms.definitions(form, [&](ValueId value) {
            found.stack |= ssa.values[value.v].variable == ASSAY_REG_RSP;
          });
        }
        if (is_copy) {
          accesses_[number].affine &= found.affine;
          if (lines_)
            function_->accesses[number].affine &= found.affine;
        } else {
          accesses_[number] = found;
          if (lines_) {
            static_cast<AccessInLoops &>(function_->accesses[number]) = found;
            explain_access(graph, ssa, forms, form, instruction, access,
                           function_->accesses[number]);
          }
        }
        number++;
      }
      if (!is_copy && instruction.flow == Flow::branch) {
        function_->figures.branches++;
        function_->figures.conditions +=
            condition_of(graph, forms, instruction, node, at).has_value();
      }
      if (lines_ && !is_copy)
        explain_line(graph, ssa, forms, node, i, at);
      at += instruction.uops;
    }
  }

  void explain_line(const FlowGraph &graph, const Ssa &ssa, Forms &forms, uint32_t node,
                    uint32_t in_block, uint32_t at) {
    const Block &block = graph.blocks[ssa.nodes[node].block];
    const Instruction &instruction = graph.code.instructions[block.first + in_block];
    ExplainedLine line;
    line.pc = instruction.address;
    line.text =
        decoder_.text(program_.executable().bytes_from(instruction.address), instruction.address);
    line.depth = ssa.loops.depth_of(node);
    line.block_begins = in_block == 0;
    for (uint32_t i = 0; i < instruction.accesses; i++)
      line.accesses.push_back(instruction.access + i);
    uint32_t loop = ssa.loops.innermost[node];
    if (in_block == 0 && loop != binary::Loop::kNone &&
        ssa.next_with_block(ssa.loops.all[loop].header) == node)
      line.loop = loop;
    line.is_branch = instruction.flow == Flow::branch;
    names_.name(graph, instruction, in_block + 1 == block.count ? &block : nullptr, line);
    if (auto condition = condition_of(graph, forms, instruction, node, at))
      line.condition = forms.text(*condition);
    function_->lines.push_back(std::move(line));
  }

  void explain_access(const FlowGraph &graph, const Ssa &ssa, Forms &forms, ExprId form,
                      const Instruction &instruction, const Access &access,
                      ExplainedAccess &explained) {
    explained.pc = instruction.address;
    explained.write = access.write;
    explained.masked = access.masked;
    explained.size = access.size;
    if (!explained.has_form)
      return;
    explained.form = forms.text(form);
    if (forms.in_image(form) || !program_.executable().position_independent())
      explained.object = names_.object_at(forms.expressions().offset_of(form));
    explain_course(graph, ssa, forms, form, explained);
  }

  // Of a branch, whose micro-ops are at `at` in Ssa::uops.
  static std::optional<Condition> condition_of(const FlowGraph &graph, Forms &forms,
                                               const Instruction &instruction, uint32_t node,
                                               uint32_t at) {
    if (instruction.flow == Flow::branch)
      for (uint32_t i = 0; i < instruction.uops; i++)
        if (graph.code.uops[instruction.uop + i].op == ASSAY_UOP_branch)
          return forms.condition(node, at + i);
    return std::nullopt;
  }

  void sort_lines() {
    base::stable_sort(function_->lines,
                      [](const ExplainedLine &a, const ExplainedLine &b) { return a.pc < b.pc; });
  }

  void explain_definitions(const FlowGraph &graph, const Ssa &ssa, const Forms &forms,
                           const std::vector<ExprId> &addresses) {
    for (const NeededDefinition &needed : needed_definitions(ssa, forms, addresses)) {
      function_->figures.definitions += needed.need == Need::recorded;
      function_->figures.arguments += needed.need == Need::argument;
      if (!lines_)
        continue;
      const Value &value = ssa.values[needed.value.v];
      const uint64_t pc =
          value.kind == ValueKind::entry ? function_->address : ssa.address_of(graph, value);
      function_->definitions.push_back({forms.name(needed.value), pc,
                                        what_it_is(needed, graph, ssa),
                                        needed.need == Need::recorded});
    }
  }

  const Program &program_;
  const AskMovability &movability_;
  bool has_loops_, lines_;
  ExplainSummary summary_;
  ExplainedFunction *function_ = nullptr;
  Decoder decoder_;
  ExplainNames names_;
  // Of the function, which is in memory once: in the order of the graph's.
  std::vector<AccessInLoops> accesses_;
  std::vector<bool> explained_; // by block, of which nodes may be copies
};

void explain_all(const Program &program, ExplainDetail detail, const AskMovability &movability,
                 Explanation &to) {
  constexpr unsigned kMaxThreads = 16; // each has tables of its own
  // For lines, each would read the debug information anew.
  const unsigned threads =
      detail == ExplainDetail::lines ? 1 : std::min(base::usable_cpus(), kMaxThreads);
  std::vector<std::unique_ptr<Explainer>> explainers;
  for (unsigned thread = 0; thread < threads; thread++)
    explainers.push_back(std::make_unique<Explainer>(program, detail, movability));
  to.functions.resize(program.routines().size());
  program.look_into_calls(threads);
  program.for_each_routine(threads, [&](uint32_t which, unsigned thread) {
    explainers[thread]->explain(program.routines()[which], to.functions[which]);
  });
  for (const auto &explainer : explainers)
    to.summary.add(explainer->summary());
  std::sort(
      to.functions.begin(), to.functions.end(), // in place; no two are alike
      [](const ExplainedFunction &a, const ExplainedFunction &b) { return a.address < b.address; });
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

} // namespace

void ExplainedFigures::add(const ExplainedFigures &more) {
  code_bytes += more.code_bytes;
  reached_bytes += more.reached_bytes;
  instructions += more.instructions;
  opaque_instructions += more.opaque_instructions;
  loops += more.loops;
  jump_tables += more.jump_tables;
  accesses += more.accesses;
  with_form += more.with_form;
  affine += more.affine;
  in_loops += more.in_loops;
  affine_in_loops += more.affine_in_loops;
  branches += more.branches;
  conditions += more.conditions;
  definitions += more.definitions;
  arguments += more.arguments;
}

void ExplainSummary::add(const ExplainSummary &more) {
  functions += more.functions;
  understood += more.understood;
  for (const auto &[reason, count] : more.why_not)
    why_not[reason] += count;
  meanings.insert(more.meanings.begin(), more.meanings.end());
  for (const auto &[name, count] : more.opaque)
    opaque[name] += count;
  figures.add(more.figures);
}

Explanation explain(const std::string &path, const std::string &function, ExplainDetail detail,
                    const MovabilityOf &movability_of) {
  double begin = cpu_seconds();
  Program program{image::Executable(path)};
  const AskMovability movability = movability_of(program);
  Explanation result;
  result.path = path;
  result.build_id = image::build_id_text(program.executable().build_id());
  Coverage coverage = coverage_of(program.executable());
  result.summary.executable_bytes = coverage.code;
  result.summary.bytes_in_functions = coverage.in_functions;
  result.summary.padding_bytes = coverage.padding;
  if (function.empty()) {
    explain_all(program, detail, movability, result);
  } else {
    const Routine *routine = program.find(function);
    if (!routine)
      base::fail("{}: {} has no such function; name another, or an address within one", function,
                 path);
    Explainer explainer(program, ExplainDetail::lines, movability);
    explainer.explain(*routine, result.functions.emplace_back());
    result.summary.add(explainer.summary());
  }
  result.cpu_seconds = cpu_seconds() - begin;
  return result;
}

} // namespace analyze
