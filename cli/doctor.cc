// `assay doctor`: what works on this machine, and the command that would mend the rest.
//
// Each check is a function that looks and answers; none changes anything (the trial compilation
// works in a folder of its own that it removes). A check that `assay heap` needs makes the exit
// status 1 when it is missing; others belong to tools that sample unmodified programs, and are only
// told.

#include "base/fail.h"
#include "base/units.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/temporary_folder.h"
#include "report/json.h"
#include "values/kernel_code.h"
#include "values/kernel_collector.h"
#include "values/upcall_collector.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

struct Health {
  enum State { ok, missing, limited } state;
  std::string found;  // what is there, a phrase
  std::string remedy; // the command that mends it; empty when ok
};

struct Check {
  const char *name;
  bool needed_for_heap;
  Health (*look)();
};

const char *state_name(Health::State state) {
  return state == Health::ok ? "ok" : state == Health::missing ? "missing" : "limited";
}

std::string first_line(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The first line that a command prints; empty if it fails.
std::string output_of(const char *command) {
  std::FILE *pipe = popen(command, "re"); // NOLINT(bugprone-command-processor): a fixed command
  if (!pipe)
    return "";
  char line[512] = "";
  if (!std::fgets(line, sizeof(line), pipe))
    line[0] = 0;
  char rest[512];
  while (std::fgets(rest, sizeof(rest), pipe))
    ;
  std::string text = pclose(pipe) == 0 ? line : "";
  return text.substr(0, text.find('\n'));
}

Health clang() {
  std::string version = output_of("clang-22 --version 2>/dev/null");
  if (version.empty())
    return {Health::missing, "clang-22 is not on the PATH", "apt-get install clang-22"};
  if (version.find("version 22.1") == std::string::npos)
    return {Health::limited, version + "; the plugin wants 22.1", "apt-get install clang-22"};
  return {Health::ok, version, ""};
}

Health reordering() {
  std::string version = output_of("clang-reorder-fields-22 --version 2>/dev/null");
  if (version.empty())
    return {Health::limited,
            "clang-reorder-fields-22 is not on the PATH; `assay fields apply` needs it",
            "apt-get install clang-tools-22"};
  return {Health::ok, "clang-reorder-fields-22 is there", ""};
}

Health file_beside(const char *name, const char *what) {
  fs::path path = installed_folder() / name;
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return {Health::ok, fs::weakly_canonical(path, ignored).string(), ""};
  return {Health::missing, fmt::format("{} is not at {}", what, path.string()),
          "./dev build   (or install the package again)"};
}

Health plugin() {
  return file_beside("libassay_pass.so", "the compiler plugin");
}
Health runtime() {
  return file_beside("libassay_rt.a", "the runtime");
}

Health trial() {
  fs::path driver = own_folder() / "assay-cc";
  std::error_code ignored;
  if (!fs::exists(driver, ignored))
    return {Health::missing, driver.string() + " is not there", "./dev build"};
  std::optional<TemporaryFolder> folder;
  try {
    folder.emplace("assay-doctor");
  } catch (const base::Failure &failure) {
    return {Health::limited, failure.what(), "TMPDIR=DIR assay doctor"};
  }
  const fs::path source = folder->path() / "one.c", program = folder->path() / "one",
                 profiles = folder->path() / "out";
  std::ofstream(source)
      << "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(9); *p = 0; "
         "int r = *p; free((void *)p); return r; }\n";
  ChildSettings quiet;
  quiet.quiet = true;
  quiet.environment = {{"ASSAY_OPTIONS", "dir=" + profiles.string()}};
  Health health = {Health::ok, "a program was compiled, run and profiled", ""};
  auto compiled =
      run_child({driver.string(), "-g", source.string(), "-o", program.string()}, quiet);
  if (compiled.wait_status != 0 || compiled.start_error) {
    health = {Health::missing, "a program of one line could not be compiled",
              fmt::format("{} -g one.c   (shows the compiler's message)", driver.string())};
  } else {
    auto ran = run_child({program.string()}, quiet);
    bool profiled = fs::exists(profiles, ignored);
    if (ran.wait_status != 0 || !profiled)
      health = {Health::missing, "a program of one line was compiled but not profiled",
                "assay-cc -g one.c && assay run -- ./a.out"};
  }
  return health;
}

Health symbolizer() {
  return {Health::ok, "built in (LLVM)", ""};
}

Health address_space() {
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY)
    return {Health::ok, "unlimited", ""};
  return {Health::missing,
          fmt::format("limited to {}; the shadow needs address space, not memory",
                      base::format_bytes(double(limit.rlim_cur))),
          "ulimit -v unlimited"};
}

Health overcommit() {
  std::string mode = first_line("/proc/sys/vm/overcommit_memory");
  if (mode == "2")
    return {Health::missing, "vm.overcommit_memory is 2, which forbids the shadow",
            "sysctl vm.overcommit_memory=0"};
  return {Health::ok, "vm.overcommit_memory is " + (mode.empty() ? "unknown" : mode), ""};
}

Health proc() {
  if (access("/proc/self/maps", R_OK) == 0)
    return {Health::ok, "mounted", ""};
  return {Health::limited,
          "/proc is not mounted, so profiles lack call stacks, names and counted accesses",
          "mount -t proc proc /proc"};
}

Health perf() {
  std::string level = first_line("/proc/sys/kernel/perf_event_paranoid");
  if (level.empty())
    return {Health::missing, "the kernel has no perf events, or hides them with /proc", ""};
  if (geteuid() == 0 || std::strtol(level.c_str(), nullptr, 10) <= 1)
    return {Health::ok, "kernel.perf_event_paranoid is " + level, ""};
  return {Health::limited, "kernel.perf_event_paranoid is " + level,
          "sysctl kernel.perf_event_paranoid=1"};
}

bool has_capability(int number) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:"))
      return std::strtoull(line.c_str() + 7, nullptr, 16) >> number & 1;
  return false;
}

Health bpf() {
  constexpr int kCapSysAdmin = 21, kCapBpf = 39;
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
    return {Health::missing, "the kernel tells no types (/sys/kernel/btf/vmlinux)",
            "use a kernel with CONFIG_DEBUG_INFO_BTF=y"};
  if (!has_capability(kCapBpf) && !has_capability(kCapSysAdmin))
    return {Health::limited, "the kernel could, but this user may not", "sudo assay …"};
  return {Health::ok, "kernel types and permission", ""};
}

// Really loads the program: kernels differ in what they take.
Health values_record() {
  values::SamplingSettings settings;
  settings.code_pages = 2;
  settings.code_entries = 64;
  try {
    values::kernel_collector(settings);
    return {Health::ok, "the kernel takes the program that interprets samples", ""};
  } catch (const base::Failure &failure) {
    return {Health::limited, failure.what(),
            geteuid() == 0 ? "use a newer kernel (5.17 has all that is needed)"
                           : "sudo assay values record …"};
  }
}

Health values_kernel() {
  const std::string why_not = values::KernelCode().why_not();
  if (why_not.empty())
    return {Health::ok, "`assay values record -a` interprets the kernel's own code", ""};
  return {Health::limited, "the kernel's own code is not interpreted: " + why_not,
          geteuid() != 0 ? "sudo assay values record -a"
          : why_not.find("kptr_restrict") != std::string::npos
              ? "sysctl kernel.kptr_restrict=1"
              : "assay values record -a --user-code   (leaves it out)"};
}

Health values_upcall() {
  if (const auto why = values::why_no_upcall())
    return {Health::limited, *why, "sysctl kernel.perf_event_paranoid=2"};
  return {Health::ok, "perf events interrupt programs, which sample themselves: no rights needed",
          ""};
}

Health values_timer() {
  sigevent how = {};
  how.sigev_notify = SIGEV_NONE;
  timer_t timer = {};
  if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0)
    return {Health::limited, "no timer can be made", "ulimit -i unlimited"};
  timer_delete(timer);
  return {Health::ok, "timers interrupt programs, where perf events are closed", ""};
}

// Really traces a program, by functions and access by access: what forbids changed code is not written anywhere.
Health trace_trial() {
  if (Health library = file_beside("libassay_relocated.so", "the library of traced programs");
      library.state != Health::ok)
    return library;
  ChildSettings quiet;
  quiet.quiet = true;
  const std::string assay = own_folder() / "assay";
  const auto traced = run_child({assay, "trace", "check", "--", "/bin/true"}, quiet);
  if (traced.wait_status == 0 && !traced.start_error)
    return {Health::ok, "a program was traced, and what was regenerated is what it accessed", ""};
  return {Health::limited, "a program could not be traced",
          "assay trace check -- /bin/true   (shows why)"};
}

Health ptrace() {
  std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0" || scope == "1")
    return {Health::ok, scope.empty() ? "not restricted" : "kernel.yama.ptrace_scope is " + scope,
            ""};
  return {Health::limited, "kernel.yama.ptrace_scope is " + scope,
          "sysctl kernel.yama.ptrace_scope=1"};
}

Health space() {
  struct statvfs status = {};
  if (statvfs(".", &status) != 0)
    return {Health::limited, "free space of this folder is unknown", "df ."};
  double free_bytes = double(status.f_bavail) * double(status.f_frsize);
  std::string found = base::format_bytes(free_bytes) + " free here";
  if (free_bytes < 256e6)
    return {Health::limited, found, "assay run -o DIR …   (a folder on another disk)"};
  return {Health::ok, found, ""};
}

constexpr Check kChecks[] = {
    {"clang", true, clang},
    {"plugin", true, plugin},
    {"runtime", true, runtime},
    {"trial", true, trial},
    {"symbolizer", true, symbolizer},
    {"address space", true, address_space},
    {"overcommit", true, overcommit},
    {"/proc", false, proc},
    {"disk", false, space},
    {"reordering", false, reordering},
    {"perf events", false, perf},
    {"bpf", false, bpf},
    {"values", false, values_record},
    {"values kernel", false, values_kernel},
    {"values upcall", false, values_upcall},
    {"values timer", false, values_timer},
    {"trace", false, trace_trial},
    {"ptrace", false, ptrace},
};

int diagnose(const AnswerOptions &options) {
  check_format(options);
  bool heap_works = true;
  std::string text;
  report::Json list = report::Json::array();
  for (const Check &check : kChecks) {
    Health health = check.look();
    heap_works &= !check.needed_for_heap || health.state != Health::missing;
    text += fmt::format("{:<8} {:<14} {}\n", state_name(health.state), check.name, health.found);
    if (!health.remedy.empty())
      text += fmt::format("{:<23}mend: {}\n", "", health.remedy);
    list.push_back({{"name", check.name},
                    {"state", state_name(health.state)},
                    {"found", health.found},
                    {"remedy", health.remedy},
                    {"needed_for_heap", check.needed_for_heap}});
  }
  text += heap_works ? "\nassay heap works on this machine\n"
                     : "\nassay heap does not work yet: mend what is missing above\n";
  report::Json document = {
      {"schema", "assay.doctor/1"}, {"heap_works", heap_works}, {"checks", list}};
  if (options.is_text())
    write_output(options.output, text);
  else
    write_document(options, document);
  return heap_works ? 0 : 1;
}

} // namespace

Action define_doctor(CommandLine line) {
  auto options = std::make_shared<AnswerOptions>();
  add_format_options(line, *options);
  line.set_footer("\nExamples:\n  assay doctor\n  assay doctor --json\n");
  return [options](const Words &) { return diagnose(*options); };
}

} // namespace cli
