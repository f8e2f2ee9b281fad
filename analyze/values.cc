// Sampled values of instructions, put together by function.
//
// A profile names instructions by module and offset. Those of one function of one module belong
// together, whatever files were inlined into it; code without a symbol is one function a module,
// because each address would be one of its own. Addresses in code become names here, so that a
// report needs no symbols. Refused: shares of all values as what is known; a share has the interval
// that its samples allow, and findings (value_findings.cc) go by its lower end.

#include "analyze/values.h"

#include "abi/records.h"
#include "abi/samples.h"
#include "abi/tools.h"
#include "analyze/instrumentation.h"
#include "analyze/measured.h"
#include "analyze/register_names.h"
#include "base/stable_sort.h"
#include "binary/decoder.h"
#include "image/elf.h"
#include "profile/code_values.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <tuple>

namespace analyze {
namespace {

const char *const kArguments[6] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};

// A function of the kernel's, of the vdso and of code that a process made is a module of its own, whose offsets begin
// with it: "[kernel] do_syscall_64", "[vdso] __vdso_getcpu", "[code made by 1234] step loop.js:2". Both
// parts; the second is empty of other modules.
std::pair<std::string, std::string> memory_and_function(const std::string &path) {
  const size_t end = path.starts_with('[') ? path.find("] ") : std::string::npos;
  if (end == std::string::npos)
    return {path, ""};
  return {path.substr(0, end + 1), path.substr(end + 2)};
}

constexpr double kNotedShare = .01; // of samples in a file whose names are missing

const char *const kEndMeanings[] = {
#define ASSAY_SAMPLE_END(name, meaning) meaning,
#include "abi/sample_ends.def"
};

const char *const kSubjects[] = {
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning) subject,
#include "abi/value_kinds.def"
};

void replace(std::string &text, std::string_view what, const std::string &by) {
  if (const size_t at = text.find(what); at != std::string::npos)
    text.replace(at, what.size(), by);
}

// "rax", "load", "argument 1 (rdi)".
std::string subject_of(unsigned kind, unsigned detail) {
  std::string subject = kind < ASSAY_VALUE_KINDS ? kSubjects[kind] : "value";
  const unsigned reg = assay_result_register(detail) & 15;
  replace(subject, "{register}",
          assay_is_second_byte(detail) ? second_byte_name(reg)
                                       : register_name(reg, assay_result_bytes(detail)));
  replace(subject, "{argument}",
          detail < std::size(kArguments) ? fmt::format("{} ({})", detail + 1, kArguments[detail])
                                         : std::to_string(detail + 1));
  return subject;
}

// "L1"; "L1/L2" where they could not be told apart.
std::string level_name(uint64_t set) {
  static const char *const kNames[] = {"L1", "L2", "L3", "memory"};
  std::string name;
  for (size_t i = 0; i < std::size(kNames); i++)
    if (set >> i & 1)
      name += (name.empty() ? "" : "/") + std::string(kNames[i]);
  return name;
}

// Names of what samples refer to.
class Namer {
public:
  Namer(const profile::Profile &profile, image::Symbols &symbols)
      : symbols_(symbols), code_values_(profile.modules) {
    for (const profile::Module &module : profile.modules)
      names_.push_back(module.path);
  }

  // The frame of an instruction: the function whose code it is, with the line of the innermost
  // inlined one. A function without a symbol is called by its address, "app+0x1149"; where nothing
  // says what it is, all such code of a file together.
  struct Place {
    std::string function, linkage_name, file, line_file;
    uint32_t function_line = 0, line = 0;
  };
  Place place(uint32_t module, uint64_t offset) {
    const CallStack &frames = frames_at(module, offset);
    const Frame &inner = frames.front(), &outer = frames.back();
    if (outer.file.empty()) // else code that has a line
      if (const std::string stub = symbols_.stub(module, offset); !stub.empty())
        return {stub, stub, "", "", 0, 0};
    return {outer.linkage_name.empty() ? unnamed(module, offset) : outer.function,
            outer.linkage_name,
            outer.function_file,
            inner.file,
            outer.function_start_line,
            inner.line};
  }

  // "sort a.c:12" of what stands for a place in code: of a call's target, or where a call returns to. Files may share a
  // number: then what lies at the place tells them apart, or "sort or find".
  std::string code(uint64_t value, bool is_target) {
    const uint64_t offset = profile::CodeValues::offset_of(value);
    const std::vector<uint32_t> modules = code_values_.modules_of(value);
    std::vector<std::string> names;
    for (uint32_t module : modules)
      if (modules.size() == 1 || has_code_at(module, offset, is_target))
        if (std::string name = code_in(module, offset, is_target);
            std::ranges::find(names, name) == names.end())
          names.push_back(std::move(name));
    return names.empty() ? fmt::format("{:#x}", value)
                         : fmt::format("{}", fmt::join(names, " or "));
  }

private:
  std::string kernel_function(uint32_t module) const {
    return memory_and_function(names_[module]).second;
  }

  bool has_code_at(uint32_t module, uint64_t offset, bool is_target) {
    constexpr uint64_t kMaxKernelFunction = 1 << 16; // bytes
    if (!kernel_function(module).empty())
      return offset < kMaxKernelFunction;
    return !frames_of(module, offset, is_target).back().linkage_name.empty() ||
           !symbols_.stub(module, offset).empty();
  }

  std::string code_in(uint32_t module, uint64_t offset, bool is_target) {
    if (const std::string function = kernel_function(module); !function.empty())
      return fmt::format("{}+{:#x}", function, offset);
    const CallStack &frames = frames_of(module, offset, is_target);
    if (frames.front().line)
      return fmt::format("{} {}:{}", frames.back().function, base_name(frames.front().file),
                         frames.front().line);
    const std::string stub = is_target ? symbols_.stub(module, offset) : "";
    return stub.empty() ? frames.back().function : stub;
  }

  // Of a call's target, or of where a call returns to.
  const CallStack &frames_of(uint32_t module, uint64_t offset, bool is_target) {
    return is_target ? frames_at(module, offset) : symbols_.call(module, offset);
  }

  // Symbols are asked for calls by their return addresses: one past the instruction's first byte.
  const CallStack &frames_at(uint32_t module, uint64_t offset) {
    return symbols_.call(module, offset + 1);
  }

  std::string unnamed(uint32_t module, uint64_t offset) {
    const std::string file = base_name(names_[module]);
    const auto begin = symbols_.function_begin(module, offset);
    return begin ? fmt::format("{}+{:#x}", file, *begin) : file + " (no symbol)";
  }

  image::Symbols &symbols_;
  profile::CodeValues code_values_;
  std::vector<std::string> names_; // of modules
};

std::vector<ValueShare> shares_of(const profile::Hotlist &hotlist, unsigned kind, Namer &namer) {
  std::vector<ValueShare> shares;
  for (const profile::HotValue &hot : hotlist.hot()) {
    ValueShare share{hot.value, hot.share, hot.low, hot.high, {}};
    if (assay_value_is(kind) == ASSAY_VALUE_IS_code)
      share.name = namer.code(hot.value, kind == ASSAY_VALUE_target);
    shares.push_back(std::move(share));
  }
  return shares;
}

ValueList list_of(const profile::SampledValues &values, Namer &namer) {
  ValueList list;
  list.kind = values.kind;
  list.subject = subject_of(values.kind, values.detail);
  list.bytes = assay_value_bytes(values.kind, values.detail);
  list.values = values.hotlist.values();
  list.samples = values.hotlist.windows();
  list.hot = shares_of(values.hotlist, values.kind, namer);
  list.strides = shares_of(values.strides, ASSAY_VALUE_result, namer);
  list.stride_samples = values.strides.windows();
  // The levels are few, so their counts are exact, and all of them are of interest.
  if (assay_value_is(values.kind) == ASSAY_VALUE_IS_levels) {
    list.hot.clear();
    for (const profile::HotEntry &entry : values.hotlist.entries()) {
      const profile::HotValue hot = values.hotlist.share_of(entry);
      list.hot.push_back({hot.value, hot.share, hot.low, hot.high, level_name(hot.value)});
    }
    base::stable_sort(list.hot, [](auto &a, auto &b) { return a.share > b.share; });
  }
  if (assay_value_is(values.kind) == ASSAY_VALUE_IS_truth)
    for (const profile::HotEntry &entry : values.hotlist.entries())
      if (entry.value)
        list.taken_share = values.hotlist.share_of(entry).share;
  return list;
}

// The answer, in the order of its members.
class Answer {
public:
  Answer(const profile::Profile &profile, image::Symbols &symbols, const ValuesQuery &query)
      : profile_(profile), query_(query), symbols_(symbols), namer_(profile, symbols) {}

  ValuesResult take() {
    result_.losses = profile_.losses;
    result_.notes = profile_.notes;
    result_.samples = profile_.values.samples;
    note_sampling();
    note_ends();
    gather_instructions();
    tell_apart();
    add_values();
    list_executables();
    if (query_.prefers_whole_name)
      keep_whole_name();
    base::stable_sort(result_.functions, has_more<ValueFunction>);
    add_conflicts(); // they point to functions, which stay where they are from here on
    result_.findings = value_findings(result_);
    note_files();
    return std::move(result_);
  }

private:
  using Key = std::pair<uint32_t, uint64_t>; // module, offset

  void note_sampling() {
    uint64_t longest_part = 0;
    for (const profile::Process &process : profile_.processes) {
      if (!process.sampling)
        continue;
      const auto &sampling = *process.sampling;
      if (result_.process.executable.empty())
        result_.process = process;
      result_.collectors |= 1u << sampling.collector;
      result_.has_latencies |= sampling.kinds >> ASSAY_VALUE_latency & 1;
      if (sampling.scope == ASSAY_SAMPLING_PART) // several are parts of the same time
        longest_part = std::max(longest_part, sampling.duration_us);
      else
        result_.duration_us += sampling.duration_us;
      constexpr uint64_t kAddresses =
          1ULL << ASSAY_VALUE_load_address | 1ULL << ASSAY_VALUE_store_address;
      result_.has_conflicts |=
          sampling.instructions >= 128 && (sampling.kinds & kAddresses) == kAddresses;
    }
    result_.duration_us = std::max(result_.duration_us, longest_part);
    result_.program_build_id = program_build_id(profile_, result_.process);
    result_.programs = program_names(profile_);
  }

  void note_ends() {
    for (size_t i = 0; i < profile_.values.ends.size(); i++)
      if (profile_.values.ends[i])
        result_.ends.emplace_back(kEndMeanings[i], profile_.values.ends[i]);
    base::stable_sort(result_.ends, [](auto &a, auto &b) { return a.second > b.second; });
  }

  void gather_instructions() {
    executables_.resize(profile_.modules.size());
    binary::Decoder decoder;
    for (const profile::SampledInstruction &each : profile_.values.instructions) {
      if (!each.module.known())
        continue;
      const uint32_t module = each.module.v;
      executables_[module].interrupts += each.interrupts;
      executables_[module].executions += each.executions;
      if (profile_.modules[module].path.find(query_.executable) == std::string::npos)
        continue;
      const Namer::Place place = namer_.place(module, each.offset);
      const std::optional<size_t> number = function_of(module, each.offset, place);
      if (!number)
        continue;
      ValueFunction &function = result_.functions[*number];
      function.interrupts += each.interrupts;
      function.executions += each.executions;
      ValueInstruction &instruction = function.instructions.emplace_back();
      instruction.offset = each.offset;
      instruction.text = decoder.text(each.bytes.span(), each.offset);
      instruction.length = each.bytes.span().size();
      instruction.interrupts = each.interrupts;
      instruction.executions = each.executions;
      instruction.file = place.line_file;
      instruction.line = place.line;
      instruction.is_instrumentation = is_instrumentation(instruction.text, symbols_.data(module));
      instruction_at_[{module, each.offset}] = {*number, function.instructions.size() - 1};
    }
  }

  // What tells a function from others of its name: where it is declared; without debug information, where it lies.
  std::string declaration_of(uint32_t module, uint64_t offset, const Namer::Place &place) {
    if (!place.file.empty())
      return fmt::format("{}:{}", place.file, place.function_line);
    const std::optional<uint64_t> begin = symbols_.function_begin(module, offset);
    return begin ? fmt::format("{:#x}", *begin) : "";
  }

  // Files have functions of one name where these are their own (`static`).
  void tell_apart() {
    std::map<std::pair<uint32_t, std::string>, size_t> of_name;
    std::map<std::tuple<uint32_t, std::string, std::string>, size_t> of_file;
    for (const auto &[key, number] : function_at_) {
      const ValueFunction &function = result_.functions[number];
      of_name[{function.module, function.name}]++;
      of_file[{function.module, function.name, base_name(function.file)}]++;
    }
    for (const auto &[key, number] : function_at_) {
      ValueFunction &function = result_.functions[number];
      if (of_name[{function.module, function.name}] == 1)
        continue;
      const std::string file = base_name(function.file);
      const std::string &declared = std::get<2>(key);
      function.told_apart =
          of_file[{function.module, function.name, file}] == 1 ? file : base_name(declared);
    }
  }

  // Nothing, if the query does not ask for it.
  std::optional<size_t> function_of(uint32_t module, uint64_t offset, const Namer::Place &place) {
    const std::string &path = profile_.modules[module].path;
    const auto [memory, of_memory] = memory_and_function(path);
    const bool is_named = !place.linkage_name.empty() && of_memory.empty();
    std::string name = of_memory.empty() ? place.function : of_memory;
    if (name.find(query_.function) == std::string::npos &&
        place.linkage_name.find(query_.function) == std::string::npos)
      return std::nullopt;
    const std::string declared = is_named ? declaration_of(module, offset, place) : "";
    const auto [known, is_new] = function_at_.try_emplace(
        {module, is_named ? place.linkage_name : name, declared}, result_.functions.size());
    if (is_new) {
      ValueFunction &function = result_.functions.emplace_back();
      function.module = module;
      function.module_path = memory;
      function.name = std::move(name);
      function.linkage_name = place.linkage_name;
      function.file = place.file;
      function.line = place.function_line;
    }
    return known->second;
  }

  void add_values() {
    for (const profile::SampledValues &each : profile_.values.values)
      if (auto known = instruction_at_.find({each.module.v, each.offset});
          known != instruction_at_.end()) {
        const auto [function, instruction] = known->second;
        result_.functions[function].instructions[instruction].lists.push_back(
            list_of(each, namer_));
      }
  }

  // Why files have no names of functions: of those that matter, as a machine's temporary files are many.
  void note_files() {
    for (const std::string &note : symbols_.notes())
      for (size_t i = 0; i < executables_.size(); i++)
        if (note.starts_with(profile_.modules[i].path + ": ") &&
            executables_[i].interrupts >= kNotedShare * double(result_.samples)) {
          result_.notes.push_back(note);
          break;
        }
  }

  // "sort" means sort, not qsort or sort_by; of C++, with or without parameters.
  void keep_whole_name() {
    auto is_whole = [&](const ValueFunction &function) {
      return function.name == query_.function || function.linkage_name == query_.function ||
             function.name.substr(0, function.name.find('(')) == query_.function;
    };
    if (std::ranges::any_of(result_.functions, is_whole))
      std::erase_if(result_.functions, std::not_fn(is_whole));
  }

  // Samples that came to no place that is known: in the kernel, where it is not interpreted, and in
  // code that was not decoded yet. So the rows add up to all samples.
  void list_samples_without_place() {
    uint64_t placed = 0;
    for (const ValueExecutable &executable : result_.executables)
      placed += executable.interrupts;
    const uint64_t elsewhere = result_.samples - std::min(placed, result_.samples);
    const uint64_t in_kernel = std::min(profile_.values.ends[ASSAY_ENDED_kernel], elsewhere);
    auto add = [&](const char *path, uint64_t samples) {
      if (!samples)
        return;
      auto row = std::find_if(result_.executables.begin(), result_.executables.end(),
                              [&](const ValueExecutable &each) { return each.path == path; });
      if (row == result_.executables.end())
        row = result_.executables.insert(row, {path, "", 0, 0});
      row->interrupts += samples;
    };
    add("[kernel]", in_kernel);
    add("[not decoded]", elsewhere - in_kernel);
  }

  // All modules of the kernel are one, and all of the code that one process made.
  void list_executables() {
    std::map<std::string, size_t> of_memory; // index in the result
    for (uint32_t i = 0; i < executables_.size(); i++) {
      ValueExecutable &executable = executables_[i];
      executable.path = memory_and_function(profile_.modules[i].path).first;
      executable.build_id = image::build_id_text(profile_.modules[i].build_id);
      if (executable.interrupts + executable.executions == 0)
        continue;
      if (executable.path.starts_with('[')) {
        const auto [known, is_new] =
            of_memory.try_emplace(executable.path, result_.executables.size());
        if (!is_new) {
          result_.executables[known->second].interrupts += executable.interrupts;
          result_.executables[known->second].executions += executable.executions;
          continue;
        }
      }
      result_.executables.push_back(executable);
    }
    list_samples_without_place();
    base::stable_sort(result_.executables, has_more<ValueExecutable>);
  }

  void add_conflicts() {
    std::map<Key, std::pair<const ValueFunction *, const ValueInstruction *>> at;
    for (const ValueFunction &function : result_.functions)
      for (const ValueInstruction &instruction : function.instructions)
        at[{function.module, instruction.offset}] = {&function, &instruction};
    for (const profile::MemoryConflict &each : profile_.values.conflicts) {
      const auto store = at.find({each.store_module.v, each.store_offset});
      const auto load = at.find({each.load_module.v, each.load_offset});
      if (store == at.end() || load == at.end())
        continue;
      ValueConflict conflict;
      conflict.kind = each.kind;
      std::tie(conflict.store_function, conflict.store) = store->second;
      std::tie(conflict.load_function, conflict.load) = load->second;
      conflict.count = each.count;
      conflict.share =
          conflict.load->executions ? double(each.count) / double(conflict.load->executions) : 0;
      result_.conflicts.push_back(conflict);
    }
    base::stable_sort(result_.conflicts, [](auto &a, auto &b) { return a.count > b.count; });
  }

  template <typename Row> static bool has_more(const Row &a, const Row &b) {
    return std::pair(a.interrupts, a.executions) > std::pair(b.interrupts, b.executions);
  }

  const profile::Profile &profile_;
  const ValuesQuery &query_;
  image::Symbols &symbols_;
  Namer namer_;
  ValuesResult result_;
  std::vector<ValueExecutable> executables_; // by module
  // By module, name, and what tells it from others of its name.
  std::map<std::tuple<uint32_t, std::string, std::string>, size_t>
      function_at_;                                         // by module and name
  std::map<Key, std::pair<size_t, size_t>> instruction_at_; // function, instruction
};

} // namespace

bool measures_values(const profile::Profile &profile) {
  return measured(profile, ASSAY_TOOL_values);
}

std::string why_no_values(const profile::Profile &) {
  return "there are no sampled values in this profile; record them with `assay values record -- "
         "./app`";
}

ValuesResult values(const profile::Profile &profile, image::Symbols &symbols,
                    const ValuesQuery &query) {
  return Answer(profile, symbols, query).take();
}

} // namespace analyze
