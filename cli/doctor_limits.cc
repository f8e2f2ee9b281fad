// What the kernel and the shell allow.

#include "base/units.h"
#include "cli/doctor.h"
#include "cli/memory_limit.h"
#include "cli/program_command.h"
#include "profile/find_profiles.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cli {

static std::string first_line(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool has_proc() {
  return access("/proc/self/maps", R_OK) == 0;
}

static rlim_t limit_of(__rlimit_resource_t resource) {
  rlimit limit = {};
  getrlimit(resource, &limit);
  return limit.rlim_cur;
}

Health address_space_health() {
  if (const auto limit = memory_limit())
    return {Health::missing,
            fmt::format("limited to {}; the shadow needs address space, not memory",
                        base::format_bytes(double(limit->bytes))),
            fmt::format("{} unlimited", limit->name)};
  return {Health::ok, "unlimited", ""};
}

Health overcommit_health() {
  std::string mode = first_line("/proc/sys/vm/overcommit_memory");
  if (mode == "2")
    return {Health::missing, "vm.overcommit_memory is 2, which forbids the shadow",
            "sysctl vm.overcommit_memory=0"};
  return {Health::ok, "vm.overcommit_memory is " + (mode.empty() ? "unknown" : mode), ""};
}

// Where files must be small or few, what is compiled, recorded or traced breaks off.
Health limits_health() {
  constexpr rlim_t kFileBytes = 256 << 20, kFiles = 256;
  if (const rlim_t bytes = limit_of(RLIMIT_FSIZE); bytes < kFileBytes)
    return {Health::limited,
            fmt::format("files are limited to {}, profiles and traces too",
                        base::format_bytes(double(bytes))),
            "ulimit -f unlimited"};
  if (const rlim_t files = limit_of(RLIMIT_NOFILE); files < kFiles)
    return {Health::limited, fmt::format("{} open files are allowed", files), "ulimit -n 1024"};
  return {Health::ok, "size and number of open files", ""};
}

Health proc_health() {
  if (has_proc())
    return {Health::ok, "mounted", ""};
  return {Health::limited,
          "/proc is not mounted, so profiles lack call stacks, names and counted accesses",
          "mount -t proc proc /proc"};
}

Health disk_health() {
  if (const int error = why_not_writable(profile::kDefaultFolder))
    return {Health::limited,
            fmt::format("{}, where profiles go, cannot be written here: {}",
                        profile::kDefaultFolder, std::strerror(error)),
            "assay run -o DIR …   (another folder)"};
  struct statvfs status = {};
  if (statvfs(".", &status) != 0)
    return {Health::limited, "free space of this folder is unknown", "df ."};
  double free_bytes = double(status.f_bavail) * double(status.f_frsize);
  std::string found = base::format_bytes(free_bytes) + " free here";
  if (free_bytes < 256e6)
    return {Health::limited, found, "assay run -o DIR …   (a folder on another disk)"};
  return {Health::ok, found, ""};
}

Health perf_events_health() {
  std::string level = first_line("/proc/sys/kernel/perf_event_paranoid");
  if (level.empty())
    return {Health::missing,
            has_proc() ? "the kernel has no perf events" : "unknown, because /proc is not mounted",
            has_proc() ? "use a kernel with CONFIG_PERF_EVENTS=y" : "mount -t proc proc /proc"};
  // Up to 2, a program may have events of its own threads (`--collector upcall`). Sampling from the kernel needs root's
  // rights at each level.
  if (geteuid() == 0 || std::strtol(level.c_str(), nullptr, 10) <= 2)
    return {Health::ok, "kernel.perf_event_paranoid is " + level, ""};
  return {Health::limited, "kernel.perf_event_paranoid is " + level,
          "sysctl kernel.perf_event_paranoid=2"};
}

static bool has_capability(unsigned number) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, sets) == 0 &&
         sets[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number);
}

Health bpf_health() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
    return {Health::missing, "the kernel tells no types (/sys/kernel/btf/vmlinux)",
            "use a kernel with CONFIG_DEBUG_INFO_BTF=y"};
  if (!has_capability(CAP_BPF) && !has_capability(CAP_SYS_ADMIN))
    return {Health::limited, "the kernel could, but this user may not", "sudo assay …"};
  return {Health::ok, "kernel types and permission", ""};
}

Health values_timer_health() {
  sigevent how = {};
  how.sigev_notify = SIGEV_NONE;
  timer_t timer = {};
  if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0)
    return {Health::limited, "no timer can be made", "ulimit -i unlimited"};
  timer_delete(timer);
  return {Health::ok, "timers interrupt programs, where perf events are closed", ""};
}

Health ptrace_health() {
  std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (!has_proc())
    return {Health::limited, "unknown, because /proc is not mounted", "mount -t proc proc /proc"};
  if (scope.empty() || scope == "0" || scope == "1")
    return {Health::ok, scope.empty() ? "not restricted" : "kernel.yama.ptrace_scope is " + scope,
            ""};
  return {Health::limited, "kernel.yama.ptrace_scope is " + scope,
          "sysctl kernel.yama.ptrace_scope=1"};
}

} // namespace cli
