// One pass over all instructions, without operands, finds what each range of code says of the others:
// whom it calls, where it jumps, whether it has a return. That is enough to put moved parts together
// with their function, whatever order they lie in and whether or not there are names.
//
// Calls that never return matter because what lies behind them belongs to another path: `abort` and
// its kin by name, and every function without a return, an indirect jump, or a jump that leaves it.

#include "binary/program.h"

#include "base/divided_work.h"
#include "binary/discovery.h"
#include "binary/plain_instructions.h"
#include "image/symbols.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_set>

namespace binary {
namespace {

const std::unordered_set<std::string_view> &known_never_returning() {
  static const std::unordered_set<std::string_view> names{"abort",
                                                          "exit",
                                                          "_exit",
                                                          "_Exit",
                                                          "quick_exit",
                                                          "__assert_fail",
                                                          "__assert_perror_fail",
                                                          "__stack_chk_fail",
                                                          "__fortify_fail",
                                                          "__chk_fail",
                                                          "longjmp",
                                                          "_longjmp",
                                                          "siglongjmp",
                                                          "__longjmp_chk",
                                                          "pthread_exit",
                                                          "__cxa_throw",
                                                          "__cxa_rethrow",
                                                          "__cxa_bad_cast",
                                                          "__cxa_bad_typeid",
                                                          "__cxa_throw_bad_array_new_length",
                                                          "__cxa_call_unexpected",
                                                          "__cxa_pure_virtual",
                                                          "__cxa_deleted_virtual",
                                                          "_Unwind_Resume",
                                                          "__clang_call_terminate",
                                                          "_ZSt9terminatev",
                                                          "_ZSt10unexpectedv",
                                                          "err",
                                                          "errx",
                                                          "verr",
                                                          "verrx",
                                                          "__libc_fatal",
                                                          "__libc_start_main",
                                                          "__builtin_unreachable",
                                                          "_gfortran_stop_string",
                                                          "_gfortran_stop_numeric",
                                                          "_gfortran_error_stop_string",
                                                          "_gfortran_runtime_error",
                                                          "_gfortran_runtime_error_at",
                                                          "_gfortran_os_error_at"};
  return names;
}

bool is_never_returning_name(std::string_view name) {
  bool throws = name.starts_with("_ZSt") && name.find("__throw_") != name.npos; // of libstdc++
  return throws || known_never_returning().contains(name);
}

constexpr uint32_t kNobody = UINT32_MAX, kSeveral = kNobody - 1;

// What is known by unwind tables or code may be a part of a function as well.
bool has_no_symbol(const image::CodeRange &range) {
  return range.found_by == image::FoundBy::unwind || range.has_guessed_end();
}

bool is_aligned(uint64_t begin) {
  return begin % 16 == 0;
}

bool is_cold_name(std::string_view name) {
  return name.find(".cold") != name.npos;
}

} // namespace

struct Program::Scan {
  struct Leaving {
    uint32_t from; // range
    uint64_t target;
  };
  std::vector<uint64_t> called, taken; // by calls; addresses that instructions make
  std::vector<Leaving> calls, leaving;
  std::vector<Leaving> running_on; // into the next range, without a jump
  std::vector<bool> returns;  // by range: a return, an indirect jump, or bytes that are no code
  std::vector<bool> moves_fs; // by range: the system call for it, or the instruction
  PlainInstructions plain;
};

bool Routine::contains(uint64_t address) const {
  return std::any_of(ranges.begin(), ranges.end(), [&](const image::CodeRange &range) {
    return address >= range.begin && address < range.end;
  });
}

uint64_t Routine::bytes() const {
  uint64_t bytes = 0;
  for (const image::CodeRange &range : ranges)
    bytes += range.end - range.begin;
  return bytes;
}

void Program::scan_range(size_t index, Scan &scan) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  const image::CodeRange &range = executable_.functions()[index];
  auto bytes = executable_.bytes(range.begin, range.end - range.begin);
  ZydisDecoderContext context;
  ZydisDecodedInstruction decoded;
  bool names_arch_prctl = false, calls_system = false;
  bool ends = false; // whether the last instruction but padding hands control elsewhere
  for (size_t at = 0; at < bytes.size();) {
    const auto rest = bytes.subspan(at);
    if (unsigned length = scan.plain.length_at(rest)) {
      ends = false;
      at += length;
      continue;
    }
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, rest.data(), rest.size(),
                                                    &decoded))) {
      scan.returns[index] = true;
      return;
    }
    scan.plain.note(rest, decoded);
    at += decoded.length;
    auto kind = decoded.meta.category;
    if (decoded.mnemonic != ZYDIS_MNEMONIC_NOP)
      ends = kind == ZYDIS_CATEGORY_RET || kind == ZYDIS_CATEGORY_CALL ||
             kind == ZYDIS_CATEGORY_UNCOND_BR || decoded.mnemonic == ZYDIS_MNEMONIC_UD2 ||
             decoded.mnemonic == ZYDIS_MNEMONIC_HLT || decoded.mnemonic == ZYDIS_MNEMONIC_INT3;
    uint64_t next = range.begin + at;
    if (decoded.mnemonic == ZYDIS_MNEMONIC_LEA && decoded.raw.modrm.mod == 0 &&
        decoded.raw.modrm.rm == 5)
      scan.taken.push_back(next + static_cast<uint64_t>(decoded.raw.disp.value));
    else if (decoded.mnemonic == ZYDIS_MNEMONIC_MOV && !executable_.position_independent() &&
             decoded.raw.imm[0].size == 32)
      scan.taken.push_back(decoded.raw.imm[0].value.u & 0xffffffff);
    constexpr uint64_t kArchPrctl = 158;
    names_arch_prctl |=
        decoded.mnemonic == ZYDIS_MNEMONIC_MOV && decoded.raw.imm[0].value.u == kArchPrctl;
    calls_system |= decoded.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
    if ((names_arch_prctl && calls_system) || decoded.mnemonic == ZYDIS_MNEMONIC_WRFSBASE)
      scan.moves_fs[index] = true;
    if (kind == ZYDIS_CATEGORY_RET) {
      scan.returns[index] = true;
    } else if (kind == ZYDIS_CATEGORY_CALL || kind == ZYDIS_CATEGORY_UNCOND_BR ||
               kind == ZYDIS_CATEGORY_COND_BR) {
      if (!decoded.raw.imm[0].is_relative) {
        if (kind == ZYDIS_CATEGORY_UNCOND_BR)
          scan.returns[index] = true;
        continue;
      }
      uint64_t target = next + static_cast<uint64_t>(decoded.raw.imm[0].value.s);
      if (kind == ZYDIS_CATEGORY_CALL) {
        scan.called.push_back(target);
        scan.calls.push_back({static_cast<uint32_t>(index), target});
      } else if (target < range.begin || target >= range.end)
        scan.leaving.push_back({static_cast<uint32_t>(index), target});
    }
  }
  if (!ends) { // it runs into what lies behind it
    scan.returns[index] = true;
    scan.running_on.push_back({static_cast<uint32_t>(index), range.end});
  }
}

void Program::find_never_returning(const Scan &scan) {
  const auto &functions = executable_.functions();
  never_returns_.assign(functions.size(), false);
  std::vector<bool> leaves(functions.size(), false);
  for (size_t i = 0; i < functions.size(); i++) {
    std::string_view import = executable_.import_of_stub(functions[i].begin);
    never_returns_[i] = !import.empty() ? is_never_returning_name(import)
                                        : is_never_returning_name(functions[i].name);
  }
  // Without a return, and every jump that leaves it goes where nothing comes back from; until no
  // more is found.
  for (bool changed = true; changed;) {
    changed = false;
    std::fill(leaves.begin(), leaves.end(), false);
    for (const auto &jump : scan.leaving)
      if (!never_returns(jump.target))
        leaves[jump.from] = true;
    for (size_t i = 0; i < functions.size(); i++)
      if (!never_returns_[i] && !scan.returns[i] && !leaves[i]) {
        never_returns_[i] = true;
        changed = true;
      }
  }
}

// Those that do it themselves, and their callers.
void Program::find_moving_fs(const Scan &scan) {
  moves_fs_ = scan.moves_fs;
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto *edges : {&scan.calls, &scan.leaving})
      for (const auto &edge : *edges)
        if (!moves_fs_[edge.from] && moves_fs(edge.target)) {
          moves_fs_[edge.from] = true;
          changed = true;
        }
  }
}

// Ranges that belong together, by number.
class Program::Groups {
public:
  explicit Groups(size_t ranges) : parent_(ranges) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  uint32_t root(uint32_t range) {
    while (parent_[range] != range)
      range = parent_[range] = parent_[parent_[range]];
    return range;
  }
  void join(uint32_t range, uint32_t into) { parent_[root(range)] = root(into); }

private:
  std::vector<uint32_t> parent_;
};

// UINT32_MAX: no function has it.
uint32_t Program::range_at(uint64_t address) const {
  const image::CodeRange *range = executable_.function_at(address);
  return range ? static_cast<uint32_t>(range - executable_.functions().data()) : UINT32_MAX;
}

void Program::join_parts(const Scan &scan, Groups &groups) const {
  const auto &functions = executable_.functions();
  for (const auto &jump : scan.leaving) {
    const uint32_t to = range_at(jump.target);
    if (to != UINT32_MAX && jump.target != functions[to].begin)
      groups.join(jump.from, to);
  }
  // What nobody calls or points at, and one group alone jumps to, is a part of that: it returns for
  // it.
  std::vector<uint32_t> jumped_from(functions.size(), kNobody);
  for (const auto &jump : scan.leaving) {
    const uint32_t to = range_at(jump.target), from = groups.root(jump.from);
    if (to == UINT32_MAX || groups.root(to) == from)
      continue;
    const uint32_t known = jumped_from[to];
    const bool same = known == kNobody || (known != kSeveral && groups.root(known) == from);
    jumped_from[to] = same ? from : kSeveral;
  }
  for (uint32_t i = 0; i < functions.size(); i++) {
    const bool is_part =
        is_cold_name(functions[i].name) ||
        (has_no_symbol(functions[i]) && functions[i].name.empty() &&
         !is_entered(functions[i].begin) &&
         !std::binary_search(scan.taken.begin(), scan.taken.end(), functions[i].begin));
    if (is_part && jumped_from[i] < kSeveral)
      groups.join(i, jumped_from[i]);
  }
}

// What is entered from outside its own group, besides calls and pointers; sorted.
std::vector<uint64_t> Program::jumps_between(const Scan &scan, Groups &groups) const {
  const auto &functions = executable_.functions();
  std::vector<uint64_t> targets;
  for (const auto &jump : scan.leaving) {
    const uint32_t to = range_at(jump.target);
    if (to != UINT32_MAX && groups.root(to) != groups.root(jump.from))
      targets.push_back(jump.target);
  }
  for (const auto &run : scan.running_on)
    if (run.from + 1 < functions.size() && groups.root(run.from + 1) != groups.root(run.from) &&
        functions[run.from + 1].begin - run.target < 16) // padding
      targets.push_back(functions[run.from + 1].begin);
  std::sort(targets.begin(), targets.end());
  return targets;
}

// Orders the parts of a routine, those that are entered first, and lists its entries.
void Program::find_entries(const Scan &scan, const std::vector<uint64_t> &jumped_to,
                           Routine &routine) const {
  auto is_entry = [&](const image::CodeRange &range) {
    if (is_cold_name(range.name))
      return false;
    // A word of data may be a pointer, or the entry of a jump table that leads to a moved part;
    // those are not aligned, and their tables in position-independent files no pointers.
    const bool pointer =
        routine.ranges.size() == 1 || executable_.position_independent() || is_aligned(range.begin);
    const bool named = !has_no_symbol(range) || !range.name.empty();
    return named || (pointer && is_entered(range.begin)) ||
           std::binary_search(scan.taken.begin(), scan.taken.end(), range.begin) ||
           std::binary_search(scan.called.begin(), scan.called.end(), range.begin) ||
           std::binary_search(jumped_to.begin(), jumped_to.end(), range.begin);
  };
  std::vector<image::CodeRange> ordered;
  std::copy_if(routine.ranges.begin(), routine.ranges.end(), std::back_inserter(ordered), is_entry);
  std::copy_if(routine.ranges.begin(), routine.ranges.end(), std::back_inserter(ordered),
               [&](const image::CodeRange &range) { return !is_entry(range); });
  routine.ranges = std::move(ordered);
  for (const image::CodeRange &range : routine.ranges)
    if (is_entry(range))
      routine.entries.push_back(range.begin);
  // Nobody is seen to enter it: of the parts that are aligned, or else of all, the largest is the
  // function.
  if (routine.entries.empty()) {
    std::iter_swap(routine.ranges.begin(),
                   std::max_element(routine.ranges.begin(), routine.ranges.end(),
                                    [](const image::CodeRange &a, const image::CodeRange &b) {
                                      return std::tuple(is_aligned(a.begin), a.end - a.begin) <
                                             std::tuple(is_aligned(b.begin), b.end - b.begin);
                                    }));
    routine.entries.push_back(routine.ranges.front().begin);
  }
  for (const image::CodeRange &range : routine.ranges) // calls into the middle
    for (uint64_t address : behind_begin(entered_, range))
      if (std::binary_search(scan.called.begin(), scan.called.end(), address))
        routine.entries.push_back(address);
}

void Program::find_routines(const Scan &scan) {
  const auto &functions = executable_.functions();
  Groups groups(functions.size());
  join_parts(scan, groups);
  const std::vector<uint64_t> jumped_to = jumps_between(scan, groups);
  routine_of_range_.assign(functions.size(), UINT32_MAX);
  std::vector<uint32_t> routine_of_root(functions.size(), UINT32_MAX);
  for (uint32_t i = 0; i < functions.size(); i++) {
    uint32_t &routine = routine_of_root[groups.root(i)];
    if (routine == UINT32_MAX) {
      routine = static_cast<uint32_t>(routines_.size());
      routines_.emplace_back();
    }
    routine_of_range_[i] = routine;
    routines_[routine].ranges.push_back(functions[i]);
  }
  for (Routine &routine : routines_)
    find_entries(scan, jumped_to, routine);
}

Program::Program(image::Executable executable) : executable_(std::move(executable)) {
  executable_.set_functions(discovered_functions(executable_));
  Scan scan;
  scan.returns.assign(executable_.functions().size(), false);
  scan.moves_fs.assign(executable_.functions().size(), false);
  for (size_t i = 0; i < executable_.functions().size(); i++)
    scan_range(i, scan);
  std::sort(scan.called.begin(), scan.called.end());
  scan.called.erase(std::unique(scan.called.begin(), scan.called.end()), scan.called.end());
  std::sort(scan.taken.begin(), scan.taken.end());
  scan.taken.erase(std::unique(scan.taken.begin(), scan.taken.end()), scan.taken.end());
  std::copy_if(scan.taken.begin(), scan.taken.end(), std::back_inserter(taken_within_),
               [&](uint64_t address) {
                 const image::CodeRange *range = executable_.function_at(address);
                 return range && range->begin != address;
               });
  std::set_union(scan.called.begin(), scan.called.end(), executable_.code_pointers().begin(),
                 executable_.code_pointers().end(), std::back_inserter(entered_));
  if (auto entry = executable_.entry())
    if (auto at = std::lower_bound(entered_.begin(), entered_.end(), *entry);
        at == entered_.end() || *at != *entry)
      entered_.insert(at, *entry);
  find_never_returning(scan);
  find_moving_fs(scan);
  find_routines(scan);
  callees_ = std::make_unique<Callees>(*this);
}
Program::~Program() = default;

const Routine *Program::routine_at(uint64_t address) const {
  const image::CodeRange *range = executable_.function_at(address);
  return range ? &routines_[routine_of_range_[static_cast<size_t>(range -
                                                                  executable_.functions().data())]]
               : nullptr;
}

const Routine *Program::find(const std::string &what) const {
  if (what.starts_with("0x")) {
    char *end = nullptr;
    uint64_t address = std::strtoull(what.c_str(), &end, 16);
    return *end ? nullptr : routine_at(address);
  }
  for (const Routine &routine : routines_)
    for (const image::CodeRange &range : routine.ranges)
      if (!range.name.empty() && (range.name == what || image::demangled(range.name) == what))
        return &routine;
  return nullptr;
}

bool Program::never_returns(uint64_t callee) const {
  const image::CodeRange *range = executable_.function_at(callee);
  return range && range->begin == callee &&
         never_returns_[static_cast<size_t>(range - executable_.functions().data())];
}

bool Program::moves_fs(uint64_t callee) const {
  const image::CodeRange *range = executable_.function_at(callee);
  return range && moves_fs_[static_cast<size_t>(range - executable_.functions().data())];
}

RegisterSet Program::kept_by(uint64_t callee) const {
  return callees_->kept_by(callee);
}

RegisterSet Program::kept_by_pointers(std::optional<uint64_t> slot) const {
  bool imported = slot && !executable_.import_of_slot(*slot).empty();
  return imported ? kKeptByFunctions : callees_->kept_by_pointers();
}

void Program::look_into_calls(unsigned threads) const {
  callees_->look_into_all(threads);
}

void Program::for_each_routine(
    unsigned threads, const std::function<void(uint32_t which, unsigned thread)> &work) const {
  constexpr uint64_t kShare = 1 << 12; // bytes of code: most functions have fewer
  base::Division division = {threads, threads * kShare, kShare};
  for (const Routine &routine : routines_)
    division.room = std::max(division.room, routine.bytes());
  base::divide_work(
      routines_.size(), division, [&](size_t which) { return routines_[which].bytes(); },
      [&](size_t which, unsigned thread) { work(static_cast<uint32_t>(which), thread); });
}

bool Program::never_returns_through(uint64_t slot) const {
  return is_never_returning_name(executable_.import_of_slot(slot));
}

bool Program::is_entered(uint64_t address) const {
  return std::binary_search(entered_.begin(), entered_.end(), address);
}

} // namespace binary
