// What values tell to change. A rule speaks only of what is certain: the lower end of the interval
// counts, not the share; and only of code that matters: by the share of all interrupts that came in
// its function.

#include "abi/records.h"
#include "abi/samples.h"
#include "analyze/deciding_load.h"
#include "analyze/ownership.h"
#include "analyze/values.h"
#include "base/stable_sort.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace analyze {
namespace {

constexpr double kAlways = .95;      // the lower end of a share that is called "always"
constexpr double kSameWay = .99;     // of a branch that goes one way
constexpr double kStrided = .9;      // of the differences between addresses
constexpr uint64_t kFewSamples = 30; // fewer prove nothing
constexpr double kMatters = .01;     // share of all interrupts
constexpr double kSlowLoad = .02; // share of all interrupts at a load and the instruction behind it
constexpr double kFar = .1;       // share of a load that L3 or memory answers
constexpr uint64_t kNearLevels = 3; // L1 and L2, of the set that a latency's value is
constexpr int64_t kLine = 64;
// Of a function's time, what one load or branch, or one argument, that never changes may save.
constexpr double kOneLoad = .1, kOneArgument = .3;
constexpr double kCLibrary = .25; // what is in it counts less: only its callers can be changed

// The C library and its loader, by the file's name.
bool is_c_library(const std::string &path) {
  const std::string name = base_name(path);
  return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-");
}

std::string location_of(const ValueFunction &function, const ValueInstruction &instruction) {
  std::string location = function.name;
  if (instruction.line)
    location += fmt::format(" {}:{}", base_name(instruction.file), instruction.line);
  else
    location += fmt::format(" at {:#x} ({})", instruction.offset, instruction.text);
  return location;
}

// What no code is written for: an address is another one in each run.
bool is_address(const ValueList &list, const ValueShare &hot) {
  constexpr uint64_t kFirst = uint64_t(1) << 40, kEnd = uint64_t(1) << 47;
  return list.bytes == 8 && hot.value >= kFirst && hot.value < kEnd;
}

// Registers that come back from the stack, and the stack protector's word, which is loaded and
// compared: there is nothing to change.
bool is_plumbing(const ValueFunction &function, size_t i) {
  const std::string &text = function.instructions[i].text;
  for (const char *start : {"pop ", "leave", "ret"})
    if (text.starts_with(start))
      return true;
  const std::string_view protector = "fs:[0x28]";
  return text.find(protector) != std::string::npos ||
         (i + 1 < function.instructions.size() &&
          function.instructions[i + 1].text.find(protector) != std::string::npos);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string evidence_of(const ValueList &list, const ValueShare &hot) {
  return fmt::format("{} of {} values in {} samples, {} to {} with 95 % confidence",
                     percent(hot.share), list.values, list.samples, percent(hot.low),
                     percent(hot.high));
}

class Rules {
public:
  explicit Rules(const ValuesResult &result) : result_(result), interrupts_(result.samples) {}

  std::vector<Finding> find() {
    for (const ValueFunction &function : result_.functions) {
      if (interrupts_ == 0 || double(function.interrupts) / double(interrupts_) < kMatters ||
          function.module_path == "[vdso]" || // the kernel's, which nobody builds
          is_profilers_own(function.name))    // of an instrumented program: nobody's to change
        continue;
      const size_t before = findings_.size();
      for (size_t i = 0; i < function.instructions.size(); i++)
        instruction(function, i);
      if (is_c_library(function.module_path))
        leave_to_callers(function, before);
    }
    for (const ValueConflict &conflict : result_.conflicts)
      this->conflict(conflict);
    base::stable_sort(findings_,
                      [](const Finding &a, const Finding &b) { return a.weight > b.weight; });
    return std::move(findings_);
  }

private:
  // Of the findings from `first` on that something is the same, the heaviest stays: what is to be
  // done is the same for each.
  void leave_to_callers(const ValueFunction &function, size_t first) {
    std::optional<Finding> heaviest;
    size_t kept = first;
    for (size_t i = first; i < findings_.size(); i++)
      if (!findings_[i].rule.starts_with("same_"))
        std::swap(findings_[kept++], findings_[i]);
      else if (!heaviest || findings_[i].weight > heaviest->weight)
        heaviest = findings_[i];
    findings_.erase(findings_.begin() + static_cast<ptrdiff_t>(kept), findings_.end());
    if (!heaviest)
      return;
    heaviest->weight *= kCLibrary;
    heaviest->action = fmt::format(
        "the code is the C library's: call `{}` less often, and keep what it gives", function.name);
    findings_.push_back(std::move(*heaviest));
  }

  void instruction(const ValueFunction &function, size_t i) {
    const ValueInstruction &at = function.instructions[i];
    if (at.is_instrumentation || (i > 0 && function.instructions[i - 1].is_instrumentation &&
                                  at.text.starts_with("j"))) // which it decides
      return;
    for (const ValueList &list : at.lists) {
      const bool is_known = list.samples >= kFewSamples && !list.hot.empty();
      const bool is_always =
          is_known && list.hot.front().low >= kAlways && !is_address(list, list.hot.front());
      if (list.kind == ASSAY_VALUE_argument && is_always)
        same_argument(function, at, list);
      else if (list.kind == ASSAY_VALUE_divisor && is_always)
        same_divisor(function, at, list);
      else if (list.kind == ASSAY_VALUE_load && is_always && !is_plumbing(function, i))
        same_load(function, at, list);
      else if (list.kind == ASSAY_VALUE_branch && is_known && list.hot.front().low >= kSameWay)
        same_way(function, i, list);
      else if (list.kind == ASSAY_VALUE_load_address)
        slow_load(function, i, list);
    }
  }

  // What the function takes of all time, as far as the instruction is executed in it.
  double weight(const ValueFunction &function, const ValueInstruction &at) const {
    uint64_t most = 1;
    for (const ValueInstruction &instruction : function.instructions)
      most = std::max(most, instruction.executions);
    return double(function.interrupts) / double(interrupts_) * double(at.executions) / double(most);
  }

  void add(const char *rule, const ValueFunction &function, const ValueInstruction &at,
           double weight, std::string message, std::string evidence, std::string action) {
    Finding finding;
    finding.rule = rule;
    finding.location = location_of(function, at);
    finding.about = {"", "", function.name, base_name(at.file), at.line};
    finding.message = finding.location + ": " + std::move(message);
    finding.saves = {double(function.interrupts) / double(interrupts_),
                     "share of samples in the function"};
    finding.weight = weight;
    finding.evidence = std::move(evidence);
    finding.action = std::move(action);
    finding.saved_share = saved_share(rule);
    findings_.push_back(std::move(finding));
  }

  // One load or branch that never changes is one of hundreds of instructions of its function.
  static double saved_share(const std::string &rule) {
    return rule == "same_load" || rule == "same_branch" ? kOneLoad
           : rule == "same_argument"                    ? kOneArgument
                                                        : 1;
  }

  void same_argument(const ValueFunction &function, const ValueInstruction &at,
                     const ValueList &list) {
    const ValueShare &hot = list.hot.front();
    add("same_argument", function, at, weight(function, at),
        fmt::format("it is called with {} = {} in {} of its calls", list.subject,
                    number_text(hot.value, list.bytes), percent(hot.share)),
        evidence_of(list, hot),
        "write a version of it for this value, and call the general one otherwise");
  }
  void same_divisor(const ValueFunction &function, const ValueInstruction &at,
                    const ValueList &list) {
    const ValueShare &hot = list.hot.front();
    const std::string divisor = number_text(hot.value, list.bytes);
    add("same_divisor", function, at, weight(function, at) * 2,
        fmt::format("a division divides by {} in {} of its executions", divisor,
                    percent(hot.share)),
        evidence_of(list, hot),
        fmt::format(
            "test for {} first: the compiler turns a division by a constant into a multiplication",
            divisor));
  }
  void same_load(const ValueFunction &function, const ValueInstruction &at, const ValueList &list) {
    const ValueShare &hot = list.hot.front();
    add("same_load", function, at, weight(function, at),
        fmt::format("a load yields {} in {} of its executions", number_text(hot.value, list.bytes),
                    percent(hot.share)),
        evidence_of(list, hot),
        "compute what depends on it once, or write the code for this value and test for it before");
  }

  // A branch alone is predicted well; it is worth a word where the value that decides it does not change.
  void same_way(const ValueFunction &function, size_t i, const ValueList &list) {
    const ValueInstruction &at = function.instructions[i];
    const ValueList *deciding = deciding_load(function, i);
    if (!deciding || deciding->samples < kFewSamples || deciding->hot.empty() ||
        deciding->hot.front().low < kAlways || is_address(*deciding, deciding->hot.front()))
      return;
    add("same_branch", function, at, weight(function, at) / 2,
        fmt::format("a branch is {} in {} of its executions, decided by a load that yields {}",
                    list.hot.front().value ? "taken" : "not taken", percent(list.hot.front().share),
                    number_text(deciding->hot.front().value, deciding->bytes)),
        evidence_of(list, list.hot.front()),
        "decide it once, outside of the loop, or by a template parameter or flag of the build");
  }

  // Where loads were timed, that is what counts: samples also wait where the processor has other reasons to.
  void slow_load(const ValueFunction &function, size_t i, const ValueList &list) {
    const ValueInstruction &at = function.instructions[i];
    if (list.samples < kFewSamples)
      return;
    uint64_t interrupts = at.interrupts;
    if (i + 1 < function.instructions.size()) // an interrupt comes behind what it waited for
      interrupts += function.instructions[i + 1].interrupts;
    const double share = double(interrupts) / double(interrupts_), far = far_share(at);
    if (far < 0 ? share < kSlowLoad : far < kFar || share < kMatters)
      return;
    const ValueShare stride = list.strides.empty() ? ValueShare{} : list.strides.front();
    if (stride.low >= kStrided)
      strided(function, at, list, share, far);
    else if (stride.high < kStrided && list.stride_samples >= kFewSamples && far >= 0 &&
             share >= kSlowLoad && !is_plumbing(function, i))
      far_load(function, at, list, share, far);
  }

  void strided(const ValueFunction &function, const ValueInstruction &at, const ValueList &list,
               double share, double far) {
    const ValueShare &stride = list.strides.front();
    const auto bytes = static_cast<int64_t>(stride.value);
    if (std::abs(bytes) < kLine)
      return;
    add("strided_load", function, at, far < 0 ? share : share * far,
        fmt::format("a load goes on by {} bytes in {} of its executions, and {}", bytes,
                    percent(stride.share),
                    far < 0 ? percent(share) + " of all samples wait there"
                            : "L3 or memory answers " + percent(far) + " of them"),
        evidence_of(list, stride),
        fmt::format("prefetch some iterations ahead (__builtin_prefetch), or lay out what is read "
                    "of each {} bytes together",
                    std::abs(bytes)));
  }

  void far_load(const ValueFunction &function, const ValueInstruction &at, const ValueList &list,
                double share, double far) {
    add("far_load", function, at, share * far,
        fmt::format("L3 or memory answers {} of the executions of a load without a constant "
                    "stride, and {} of all samples wait there",
                    percent(far), percent(share)),
        fmt::format("{} addresses in {} samples", list.values, list.samples),
        "lay out what is read one after the other side by side (`assay fields`, `assay objects` "
        "say what is used), make it smaller, or prefetch an address as soon as it is known");
  }

  // Of a load that was timed, the share that neither L1 nor L2 has answered; less than 0 where too few were timed.
  static double far_share(const ValueInstruction &at) {
    for (const ValueList &list : at.lists)
      if (list.kind == ASSAY_VALUE_latency && list.samples >= kFewSamples) {
        double far = 0;
        for (const ValueShare &level : list.hot)
          far += level.value & kNearLevels ? 0 : level.share;
        return far;
      }
    return -1;
  }

  void conflict(const ValueConflict &conflict) {
    if (conflict.count < kFewSamples || conflict.share < .05 || interrupts_ == 0)
      return;
    struct Words {
      const char *rule, *what, *action;
    };
    static const Words kWords[] = {
        {"store_forwarding", "has written only part of what it reads",
         "store and load with the same width, or leave some instructions between them"},
        {"alias_4k", "has the same low 12 bits of its address",
         "move one of the two arrays by some lines of cache, so that their distance is no multiple "
         "of 4096"},
        {"memory_order", "writes there, by an address that is loaded later than the load's own",
         "load what the store's address comes from earlier, or keep the value in a register "
         "instead of loading it again"}};
    const Words &words = kWords[std::clamp(conflict.kind, 1u, 3u) - 1];
    const double weight = this->weight(*conflict.load_function, *conflict.load) * conflict.share;
    if (weight < kMatters || is_profilers_own(conflict.load_function->name))
      return;
    add(words.rule, *conflict.load_function, *conflict.load, weight,
        fmt::format("{} of the executions of this load follow a store at {} that {}",
                    percent(conflict.share), location_of(*conflict.store_function, *conflict.store),
                    words.what),
        fmt::format("{} times in the samples", conflict.count), words.action);
  }

  const ValuesResult &result_;
  const uint64_t interrupts_; // all, wherever they came
  std::vector<Finding> findings_;
};

} // namespace

std::string number_text(uint64_t value, unsigned bytes) {
  constexpr int64_t kSmall = 1000;
  const unsigned bits = 8 * bytes;
  const auto number = static_cast<int64_t>(value);
  // Of one or two bytes it is not known whether they have a sign; most have none.
  const int64_t narrow =
      bits >= 64 || bits < 32 ? number : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
  return narrow > -kSmall && narrow < kSmall ? fmt::format("{}", narrow)
                                             : fmt::format("{:#x}", value);
}

std::vector<Finding> value_findings(const ValuesResult &result) {
  return Rules(result).find();
}

} // namespace analyze
