// What is installed, and whether it works: a program is compiled, run and profiled, another one
// traced, in a folder that is removed, and the program that interprets samples is given to the
// kernel.

#include "base/fail.h"
#include "cli/child.h"
#include "cli/doctor.h"
#include "cli/temporary_folder.h"
#include "values/kernel_code.h"
#include "values/kernel_collector.h"
#include "values/upcall_collector.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cli {
namespace {

namespace fs = std::filesystem;

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Told {
  bool good = false;
  std::string line; // the first one that speaks of an error, or the first one
};

std::string text_in(int descriptor) {
  std::string text;
  char piece[4096];
  lseek(descriptor, 0, SEEK_SET);
  for (ssize_t n; (n = read(descriptor, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(n));
  return text;
}

Told run_quietly(const std::vector<std::string> &command, const Environment &environment = {}) {
  ChildSettings settings;
  settings.quiet = true;
  settings.environment = environment;
  settings.output = memfd_create("told", MFD_CLOEXEC);
  const ChildStatus status = run_child(command, settings);
  std::istringstream text(text_in(settings.output));
  close(settings.output);
  if (status.start_error)
    return {false, fmt::format("{}: {}", command.front(), std::strerror(status.start_error))};
  Told told{status.wait_status == 0, ""};
  std::getline(text, told.line);
  for (std::string line = told.line; !told.good && text; std::getline(text, line))
    if (line.find("error") != std::string::npos) {
      told.line = line;
      break;
    }
  if (constexpr std::string_view kOurs = "assay: "; told.line.starts_with(kOurs))
    told.line.erase(0, kOurs.size());
  return told;
}

std::string because(const Told &told) {
  return told.line.empty() ? "" : ": " + told.line;
}

Health file_at(const fs::path &path, const char *what) {
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return {Health::ok, fs::weakly_canonical(path, ignored).string(), ""};
  return {Health::missing, fmt::format("{} is not at {}", what, path.string()),
          "./dev build   (or install the package again)"};
}

Health file_beside(const char *name, const char *what) {
  return file_at(installed_folder() / name, what);
}

Health driver() {
  return file_at(own_folder() / "assay-cc", "the compiler driver");
}

} // namespace

// The one that assay-cc takes.
Health clang_health() {
  if (Health found = driver(); found.state != Health::ok)
    return found;
  const Told told = run_quietly({own_folder() / "assay-cc", "--version"});
  if (!told.good)
    return {Health::missing, told.line.empty() ? "assay-cc does not run" : told.line,
            std::getenv("ASSAY_CLANG") ? "unset ASSAY_CLANG" : "apt-get install clang-22"};
  if (told.line.find("version 22.1") == std::string::npos)
    return {Health::limited, told.line + "; the plugin wants 22.1", "apt-get install clang-22"};
  return {Health::ok, told.line, ""};
}

Health reordering_health() {
  if (!run_quietly({"clang-reorder-fields-22", "--version"}).good)
    return {Health::limited,
            "clang-reorder-fields-22 is not on the PATH; `assay fields apply` needs it",
            "apt-get install clang-tools-22"};
  return {Health::ok, "clang-reorder-fields-22 is there", ""};
}

Health plugin_health() {
  return file_beside("libassay_pass.so", "the compiler plugin");
}

Health runtime_health() {
  return file_beside("libassay_rt.a", "the runtime");
}

static Health tried_in(const fs::path &folder) {
  const std::string driver = own_folder() / "assay-cc", program = folder / "one";
  const fs::path source = folder / "one.c", profiles = folder / "out";
  std::ofstream(source)
      << "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(9); *p = 0; "
         "int r = *p; free((void *)p); return r; }\n";
  if (const Told told = run_quietly({driver, "-g", source, "-o", program}); !told.good)
    return {Health::missing, "a program of one line could not be compiled" + because(told),
            driver + " -g one.c   (shows the compiler's message)"};
  const Told told = run_quietly({program}, {{"ASSAY_OPTIONS", "dir=" + profiles.string()}});
  std::error_code ignored;
  if (told.good && fs::exists(profiles, ignored))
    return {Health::ok, "a program was compiled, run and profiled", ""};
  if (access(program.c_str(), X_OK) != 0)
    return {Health::limited,
            fmt::format("programs may not be run in {}", folder.parent_path().string()),
            "TMPDIR=DIR assay doctor"};
  return {Health::missing, "a program of one line was compiled but not profiled" + because(told),
          "assay-cc -g one.c && assay run -- ./a.out"};
}

Health trial_health() {
  if (Health found = driver(); found.state != Health::ok)
    return found;
  try {
    const TemporaryFolder folder("assay-doctor");
    return tried_in(folder.path());
  } catch (const base::Failure &failure) {
    return {Health::limited, failure.what(), "TMPDIR=DIR assay doctor"};
  }
}

Health symbolizer_health() {
  return {Health::ok, "built in (LLVM)", ""};
}

// Really loads the program: kernels differ in what they take.
Health values_health() {
  values::SamplingSettings settings;
  settings.code_pages = 2;
  settings.code_entries = 64;
  try {
    values::kernel_collector(settings);
    return {Health::ok, "the kernel takes the program that interprets samples", ""};
  } catch (const base::Failure &failure) {
    const std::string why = failure.what();
    return {Health::limited, why,
            geteuid() != 0                               ? "sudo assay values record …"
            : why.find("ulimit -n") != std::string::npos ? "ulimit -n 1024"
            : why.find("need root") != std::string::npos
                ? "assay values record --collector upcall …"
                : "use a newer kernel (5.17 has all that is needed)"};
  }
}

Health values_kernel_health() {
  const std::string why_not = values::KernelCode().why_not();
  if (why_not.empty())
    return {Health::ok, "`assay values record -a` interprets the kernel's own code", ""};
  return {Health::limited, "the kernel's own code is not interpreted: " + why_not,
          geteuid() != 0 ? "sudo assay values record -a"
          : why_not.find("kallsyms") != std::string::npos && !has_proc()
              ? "mount -t proc proc /proc"
          : why_not.find("kptr_restrict") != std::string::npos
              ? "sysctl kernel.kptr_restrict=1"
              : "assay values record -a --user-code   (leaves it out)"};
}

Health values_upcall_health() {
  if (const auto why = values::why_no_upcall())
    return {Health::limited, *why, "sysctl kernel.perf_event_paranoid=2"};
  return {Health::ok, "perf events interrupt programs, which sample themselves: no rights needed",
          ""};
}

// Really traces a program, by functions and access by access: what forbids changed code is not written anywhere.
Health trace_health() {
  if (Health library = file_beside("libassay_relocated.so", "the library of traced programs");
      library.state != Health::ok)
    return library;
  const Told told = run_quietly({own_folder() / "assay", "trace", "check", "--", "/bin/true"});
  if (told.good)
    return {Health::ok, "a program was traced, and what was regenerated is what it accessed", ""};
  return {Health::limited, "a program could not be traced" + because(told),
          "assay trace check -- /bin/true   (shows why)"};
}

} // namespace cli
