// `assay explain EXE [FUNCTION]`: what the analysis of an executable understood.
//
// A function may be named as a person would say it, without parameters and namespaces, as long as that
// means one function: C++ names are long. Whether there is such a function is asked of the symbols
// before the executable is analysed, so that a wrong name is answered at once.

#include "analyze/explain.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/likeness.h"
#include "cli/output.h"
#include "image/elf.h"
#include "image/executable.h"
#include "image/symbols.h"
#include "report/explain.h"
#include "report/micro_ops.h"
#include "trace/movability.h"

#include <algorithm>
#include <memory>
#include <tuple>

namespace cli {
namespace {

struct ExplainArguments {
  AnswerOptions answer;
  std::string executable, function;
  bool lines = false;
  bool micro_ops = false;
};

// "ns::f" of "ns::f(int) const": the last parentheses and what follows them are left out.
std::string without_parameters(const std::string &name) {
  size_t at = name.rfind(')');
  for (size_t open = 0; at != std::string::npos; at--) {
    open += name[at] == ')';
    if (name[at] == '(' && --open == 0)
      return at ? name.substr(0, at) : name;
    if (at == 0)
      break;
  }
  return name;
}

struct Candidate {
  std::string linkage_name, name, short_name; // as linked, demangled, without parameters
  uint64_t address = 0;

  bool is(const std::string &wanted) const { return linkage_name == wanted || name == wanted; }
  // As a person would say it.
  bool may_be(const std::string &wanted) const {
    return short_name == wanted || short_name.ends_with("::" + wanted);
  }
  // The smaller, the more alike.
  size_t away_from(const std::string &wanted) const {
    if (short_name.find(wanted) != std::string::npos)
      return 0;
    size_t scope = short_name.rfind("::");
    size_t away = std::min(distance(wanted, name), distance(wanted, short_name));
    return scope == std::string::npos
               ? away
               : std::min(away, distance(wanted, short_name.substr(scope + 2)));
  }
};

// All names of its functions: the symbols, of which several may name one function, and the stubs of the
// PLT, which have none.
std::vector<Candidate> candidates_of(const std::string &path) {
  image::Executable executable(path);
  std::vector<Candidate> candidates;
  auto add = [&](const std::string &linkage_name, uint64_t address) {
    if (linkage_name.empty())
      return;
    std::string name = image::demangled(linkage_name);
    std::string short_name = without_parameters(name);
    candidates.push_back({linkage_name, std::move(name), std::move(short_name), address});
  };
  for (const image::CodeRange &range : executable.functions())
    add(range.name, range.begin);
  for (const image::Function &symbol : image::functions(path))
    if (const image::CodeRange *range = executable.function_at(symbol.address);
        range && range->name != symbol.linkage_name)
      add(symbol.linkage_name, symbol.address);
  return candidates;
}

// "a, b and c": at most three of them.
std::string list_of(const std::vector<const Candidate *> &candidates) {
  std::string list;
  size_t count = std::min<size_t>(candidates.size(), 3);
  for (size_t i = 0; i < count; i++)
    list += (i == 0 ? "" : i + 1 < count ? ", " : " and ") + report::printable(candidates[i]->name);
  return list;
}

[[noreturn]] void fail_for_unknown(const ExplainArguments &arguments,
                                   const std::vector<Candidate> &candidates) {
  std::string wanted = report::printable(arguments.function);
  if (candidates.empty())
    base::fail("{}: {} has no names of functions; name an address, such as 0x1130", wanted,
               arguments.executable);
  std::vector<std::tuple<size_t, size_t, const Candidate *>> ranked;
  ranked.reserve(candidates.size());
  for (const Candidate &candidate : candidates)
    ranked.emplace_back(candidate.away_from(arguments.function), candidate.name.size(), &candidate);
  std::sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) {
    const auto &[away_a, length_a, candidate_a] = a;
    const auto &[away_b, length_b, candidate_b] = b;
    return std::tie(away_a, length_a, candidate_a->name) <
           std::tie(away_b, length_b, candidate_b->name);
  });
  std::vector<const Candidate *> nearest;
  for (const auto &[away, length, candidate] : ranked)
    if (nearest.empty() || nearest.back()->name != candidate->name)
      nearest.push_back(candidate);
  base::fail("{}: {} has no such function; the nearest names are {}", wanted, arguments.executable,
             list_of(nearest));
}

// The function that is meant, as analyze::explain() takes it.
std::string resolved_function(const ExplainArguments &arguments) {
  const std::string &wanted = arguments.function;
  if (wanted.empty() || wanted.starts_with("0x"))
    return wanted;
  std::vector<Candidate> candidates = candidates_of(arguments.executable);
  std::vector<const Candidate *> meant;
  for (const Candidate &candidate : candidates) {
    if (candidate.is(wanted))
      return fmt::format("{:#x}", candidate.address);
    if (candidate.may_be(wanted))
      meant.push_back(&candidate);
  }
  if (meant.empty())
    fail_for_unknown(arguments, candidates);
  // Several names of one function are no question.
  bool differ = std::any_of(meant.begin(), meant.end(), [&](const Candidate *candidate) {
    return candidate->address != meant.front()->address;
  });
  if (differ)
    base::fail("{}: this may be one of {} functions, such as {}; name one of them",
               report::printable(wanted), meant.size(), list_of(meant));
  return fmt::format("{:#x}", meant.front()->address);
}

// What `assay trace` does with a function.
analyze::AskMovability movability_of(const binary::Program &program) {
  auto movability = std::make_shared<const trace::Movability>(program);
  return [movability](const binary::Routine &routine,
                      const binary::FlowGraph &graph) -> analyze::Immovable {
    const trace::WhyUnmoved why = movability->of(routine, graph).why;
    if (why == trace::WhyUnmoved::moved)
      return {};
    return {trace::why_unmoved_name(why), trace::why_unmoved_meaning(why)};
  };
}

int answer_explain(const ExplainArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  if (arguments.micro_ops) {
    write_output(options.output, report::micro_op_tables());
    return 0;
  }
  check_format(options);
  if (arguments.executable.empty())
    base::fail("explain: which executable? name one, such as `assay explain /bin/ls`");
  bool one = !arguments.function.empty();
  if (one && (options.top || !options.sort.empty() || !options.filter.empty()))
    base::fail("{}: --top, --sort and --filter choose among all functions; leave them out, or this "
               "one",
               report::printable(arguments.function));
  report::FunctionQuery query{options.sort, options.filter};
  report::selected_functions({}, query); // a wrong key or expression is said at once
  using enum analyze::ExplainDetail;
  const analyze::Explanation explanation =
      analyze::explain(arguments.executable, resolved_function(arguments),
                       arguments.lines     ? lines
                       : options.is_text() ? figures
                                           : loops,
                       movability_of);
  if (!options.is_text()) {
    write_document(
        options, report::explain_document(explanation, query, options.top, one || arguments.lines));
    return 0;
  }
  std::string text;
  if (one) {
    for (const auto &function : explanation.functions)
      text += report::explained_function_text(function, explanation.path, options.style());
  } else {
    report::ExplainTextOptions how{query, options.top ? options.top : 20, 0};
    if (arguments.lines)
      how.lines = options.top ? options.top : SIZE_MAX;
    text = report::explain_text(explanation, how, options.style());
  }
  write_output(options.output, text);
  return 0;
}

} // namespace

Action define_explain(CommandLine line) {
  auto arguments = std::make_shared<ExplainArguments>();
  AnswerOptions &answer = arguments->answer;
  line.add_option("EXE", arguments->executable,
                  "an executable or shared object for x86-64 Linux, built in any way");
  line.add_option("FUNCTION", arguments->function,
                  "one function, instruction by instruction: its name or 0xADDRESS");
  add_format_options(line, answer);
  line.add_option("--top", answer.top, "rows of each table (20), functions in JSON (all)");
  line.add_option("--sort", answer.sort, "the functions in this order");
  line.add_option("--filter", answer.filter,
                  "only functions whose name matches this regular expression")
      .may_be_empty();
  line.add_flag(
      "--lines", arguments->lines,
      "the instructions of all functions; in JSON their graphs, accesses, branches, definitions");
  line.add_flag("--micro-ops", arguments->micro_ops, "the tables of docs/micro-ops.md").is_hidden();
  std::string keys;
  for (const report::FunctionOrder &order : report::function_orders())
    keys += fmt::format("  {:<12}{}\n", order.key, order.question);
  line.set_footer(
      "\nKeys of --sort:\n" + keys +
      "\nExamples:\n  assay explain ./app my_function\n  assay explain /bin/ls --sort affine --top "
      "5\n  assay explain /bin/ls "
      "--json -o ls.json\n");
  return [arguments](const Words &) { return answer_explain(*arguments); };
}

} // namespace cli
