// What is asked for becomes settings, or one sentence that says why not. Nothing is started here.

#include "cli/values_settings.h"

#include "abi/tools.h"
#include "base/fail.h"
#include "base/list.h"
#include "base/units.h"
#include "values/memory_levels.h"

#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/utsname.h>
#include <unistd.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kConflictInstructions = 128;
constexpr uint32_t kMaxSkipped = 4096; // some 400 us of a sample

} // namespace

std::string kind_words() {
  std::string words;
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning)                                \
  if (words.find(word) == std::string::npos)                                                       \
    words += (words.empty() ? "" : ", ") + std::string(word);
#include "abi/value_kinds.def"
  return words;
}

namespace {

// "results,loads" as a set of enum assay_value_kind.
values::Kinds kinds_of(const std::string &list) {
  if (list.empty())
    return values::kAllKinds & ~values::kind_bit(ASSAY_VALUE_latency);
  values::Kinds kinds = 0;
  for (std::string_view wanted : base::split_list(list)) {
    values::Kinds found = 0;
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning)                                \
  if (wanted == word)                                                                              \
    found |= values::kind_bit(ASSAY_VALUE_##name);
#include "abi/value_kinds.def"
    if (!found)
      base::fail("--record {}: there is no such kind of values; there are {}", wanted,
                 kind_words());
    kinds |= found;
  }
  return kinds;
}

} // namespace

values::RecordingSettings settings_of(const RecordArguments &arguments) {
  values::RecordingSettings settings;
  settings.sampling.hertz = base::parse_count(arguments.hertz, "-F");
  if (settings.sampling.hertz == 0 || settings.sampling.hertz > 100'000)
    base::fail("-F {}: choose 1 to 100,000 samples a second", arguments.hertz);
  const unsigned usual = arguments.conflicts ? kConflictInstructions : 16;
  settings.sampling.instructions = arguments.instructions.value_or(usual);
  if (settings.sampling.instructions == 0 || settings.sampling.instructions > 256)
    base::fail("-k {}: choose 1 to 256 instructions of a sample", *arguments.instructions);
  if (arguments.conflicts && settings.sampling.instructions < kConflictInstructions)
    base::fail("-k {}: stores and loads that are {} instructions apart matter; leave -k out, or "
               "choose more",
               *arguments.instructions, kConflictInstructions);
  if (arguments.skip > kMaxSkipped)
    base::fail("--skip {}: choose at most {} instructions, which are interpreted while the program "
               "waits",
               arguments.skip, kMaxSkipped);
  settings.sampling.most_skipped = arguments.skip;
  settings.sampling.is_random_length = !arguments.fixed;
  settings.kinds = kinds_of(arguments.record);
  if (arguments.conflicts)
    settings.kinds = values::kind_bit(ASSAY_VALUE_load_address) |
                     values::kind_bit(ASSAY_VALUE_store_address) |
                     values::kind_bit(ASSAY_VALUE_branch) | values::kConstantAddresses |
                     (arguments.record.empty() ? 0 : settings.kinds);
  for (std::string_view name : base::split_list(arguments.callers))
    if (!name.empty())
      settings.callers_in.emplace_back(name);
  if (!settings.callers_in.empty())
    settings.kinds |= values::kind_bit(ASSAY_VALUE_caller);
  if (arguments.latency)
    settings.kinds |= values::kind_bit(ASSAY_VALUE_latency);
  settings.sampling.kernel_code = arguments.all && !arguments.user_code;
  settings.sampling.times_loads = settings.kinds & values::kind_bit(ASSAY_VALUE_latency);
  settings.sums.conflicts = arguments.conflicts;
  settings.sums.even = arguments.even;
  settings.sums.hotlist = profile::hotlist_kind(arguments.hotlist);
  settings.sums.seed = arguments.seed;
  return settings;
}

std::chrono::microseconds duration_of(const RecordArguments &arguments) {
  const std::chrono::microseconds duration(
      base::parse_duration_us(arguments.duration, "--duration"));
  if (duration.count() == 0)
    base::fail("--duration {}: there would be no sample; choose a longer time, such as 10s, or "
               "leave it out",
               arguments.duration);
  return duration;
}

std::string sampled_name(const RecordArguments &arguments) {
  if (arguments.all)
    return "system";
  if (arguments.pid) {
    std::ifstream comm(fmt::format("/proc/{}/comm", arguments.pid));
    std::string name;
    std::getline(comm, name);
    return name.empty() ? fmt::format("pid{}", arguments.pid) : fs::path(name).filename().string();
  }
  return fs::path(arguments.command.front()).filename().string();
}

profile::Process process_of(const RecordArguments &arguments, pid_t pid) {
  profile::Process process;
  process.start_unix_ns =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count());
  process.pid = static_cast<uint64_t>(pid);
  process.tools = ASSAY_TOOL_values;
  process.executable = arguments.all ? "(all processes)" : sampled_name(arguments);
  std::error_code error;
  if (arguments.pid)
    process.executable = fs::read_symlink(fmt::format("/proc/{}/exe", arguments.pid), error);
  process.arguments = arguments.command;
  profile::Machine machine;
  machine.cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.page_bytes = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  machine.line_bytes = 64;
  machine.l1d_bytes = values::cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 0);
  machine.l2_bytes = values::cache_bytes(_SC_LEVEL2_CACHE_SIZE, 0);
  machine.l3_bytes = values::cache_bytes(_SC_LEVEL3_CACHE_SIZE, 0);
  utsname names = {};
  if (uname(&names) == 0) {
    machine.kernel = names.release;
    machine.host = names.nodename;
  }
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) {
      machine.cpu_model = line.substr(line.find(':') + 2);
      break;
    }
  process.machine = machine;
  return process;
}

} // namespace cli
