// What the analysis of an executable understood: routines, loops, and for each memory access the form
// of its address.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace binary {
struct FlowGraph;
struct Routine;
class Program;
} // namespace binary

namespace analyze {

// What figures ask of an access, of which a function may have a hundred thousand.
struct AccessInLoops {
  bool has_form = false;      // something is known of its address
  bool affine = false;        // in all loops around it, it changes with their counters alone
  bool stack = false;         // an address of the stack pointer's
  unsigned depth = 0;         // loops around it
  uint32_t loop = UINT32_MAX; // the innermost around it, in ExplainedFunction::loops
};

struct ExplainedAccess : AccessInLoops {
  uint64_t pc = 0;
  bool write = false;
  bool masked = false;           // made if an element of a mask says so
  unsigned size = 0;             // bytes
  std::string form;              // "0x404060 + 8*J + 4112*I"; empty if nothing is known
  std::optional<int64_t> stride; // bytes from one iteration of the loop to the next
  std::optional<uint64_t>
      footprint; // bytes that it touches in the loop's iterations, if their number is known
  std::string why_not_affine; // "rax.7, a load at 0x1139, is made anew in each iteration of I"
  std::string object;         // "counts", "counts+16": the variable at its constant part
};

struct ExplainedLine { // one instruction
  uint64_t pc = 0;
  std::string text; // Intel syntax
  unsigned depth = 0;
  std::vector<uint32_t> accesses; // in ExplainedFunction::accesses
  std::string condition;          // of a branch: "1 + J - r14.5 == 0"; empty if it is not known
  bool is_branch = false;
  uint32_t loop = UINT32_MAX; // the loop whose first instruction this is
  bool block_begins = false;  // control arrives here from elsewhere
  bool opaque = false;
  bool tail_call = false;        // a jump that leaves the function
  unsigned micro_ops = 0;        // what executing it costs
  std::string callee;            // of a call or a jump out of the function: "printf", "f+0x10"
  std::vector<std::string> kept; // of a call: the registers that it keeps, as far as they are known
  std::string mentions; // a string or a variable whose address it makes: "\"%d items\"", "table+8"
  std::string file;     // of its source line; empty if that is not known
  uint32_t source_line = 0;
};

struct ExplainedBlock {
  uint64_t address = 0;
  uint64_t instructions = 0;
  std::vector<std::string>
      live; // registers that may be read before they are written, general and flags
};
struct ExplainedEdge {
  uint64_t from = 0, to = 0; // blocks, by address
  std::string kind;          // "taken", "table" …
};
struct ExplainedTable {
  uint64_t jump = 0, address = 0; // the instruction; the first entry
  unsigned entry_bytes = 0;
  bool bounded = false;                         // by a comparison
  std::vector<std::optional<uint64_t>> entries; // in order; none where no index leads
};
struct ExplainedExit { // of a loop
  uint64_t pc = 0;
  std::string leaves_if; // a condition; empty if it is not known, or if there is none
  bool by_exception = false;
};

struct ExplainedLoop {
  uint64_t header = 0; // address
  std::string counter; // "I": its iterations, from 0; empty if it is entered at several places
  uint32_t parent = UINT32_MAX;      // in ExplainedFunction::loops
  unsigned depth = 1;                // 1: outermost
  uint64_t instructions = 0;         // those of inner loops included
  uint64_t accesses = 0, affine = 0; // in it, inner loops included, and not of the stack
  std::vector<ExplainedExit> exits;
  // How often its header is reached each time that it is entered: a form of which `iterations_bits` bits
  // count; empty if that is not known.
  std::string iterations;
  unsigned iterations_bits = 64;
  bool iterations_fit = true;              // the form is never more than these bits hold
  std::optional<uint64_t> iteration_count; // if it is a number
  std::string sentence;                    // all of it in words
};

struct ExplainedDefinition { // a value that the forms need and that is not computed from others
  std::string name;          // "rdi.0", "rax.7"
  uint64_t pc = 0;           // the instruction that makes it; of an argument the routine's address
  std::string what;          // "argument", "load", "result of a call", "join", "computed" …
  bool logged = true;        // else it is given by the caller, or joined from known values
};

// Sums, of one function or of all.
struct ExplainedFigures {
  uint64_t code_bytes = 0, reached_bytes = 0; // of all ranges; of instructions that control reaches
  uint64_t instructions = 0, opaque_instructions = 0;
  uint64_t loops = 0, jump_tables = 0;
  uint64_t accesses = 0, with_form = 0, affine = 0;
  uint64_t in_loops = 0, affine_in_loops = 0; // of these, and not of the stack
  uint64_t branches = 0, conditions = 0;      // conditional ones; those whose condition is known
  uint64_t definitions = 0; // to log, so that every access with a form can be computed
  uint64_t arguments = 0;   // that the forms need besides, and that callers can give
  void add(const ExplainedFigures &more);
};

// Why a routine's code cannot be executed at another place: a name and a sentence, which hold for as long as the
// program runs; empty if it can.
struct Immovable {
  std::string_view name, meaning;
};

struct ExplainedFunction {
  std::string name; // demangled; "0x…" without a symbol
  std::string linkage_name;
  uint64_t address = 0;
  uint64_t bytes = 0; // of code
  bool understood = false;
  std::string_view why_not;         // "unresolved_jump"; empty if it is understood
  std::string_view why_not_meaning; // a sentence
  uint64_t where = 0;               // the address at which it was not understood
  ExplainedFigures figures;
  std::vector<ExplainedLoop> loops;
  std::vector<ExplainedLine> lines; // by address
  std::vector<ExplainedAccess> accesses;
  std::vector<ExplainedDefinition> definitions;
  std::vector<ExplainedBlock> blocks; // as are edges and tables, with `lines` only
  std::vector<ExplainedEdge> edges;
  std::vector<ExplainedTable> tables;
  Immovable immovable;
};

struct ExplainSummary {
  // Of all executable sections; in functions that are known, and between them.
  uint64_t executable_bytes = 0, bytes_in_functions = 0, padding_bytes = 0;
  uint64_t functions = 0, understood = 0;
  std::map<std::string_view, uint64_t> why_not;          // reason -> functions
  std::map<std::string_view, std::string_view> meanings; // of the reasons
  std::map<std::string, uint64_t> opaque; // name of an instruction -> how many are opaque
  ExplainedFigures figures;
  // What is counted by function.
  void add(const ExplainSummary &more);
};

struct Explanation {
  std::string path, build_id;
  ExplainSummary summary;
  std::vector<ExplainedFunction> functions; // by address
  double cpu_seconds = 0;                   // that the analysis took
};

// What functions carry: their figures; their loops, too; all.
enum class ExplainDetail : uint8_t { figures, loops, lines };

// What says of a program's routines whether they can be moved; the program outlives it. Several threads ask at once.
using AskMovability =
    std::function<Immovable(const binary::Routine &routine, const binary::FlowGraph &graph)>;
using MovabilityOf = std::function<AskMovability(const binary::Program &program)>;

// All routines, or the one that `function` names (linkage name, demangled name or 0xADDRESS), which
// carries all. Throws Failure for what is no x86-64 ELF file, and for a function that is not there.
Explanation explain(const std::string &path, const std::string &function, ExplainDetail detail,
                    const MovabilityOf &movability_of);

} // namespace analyze
