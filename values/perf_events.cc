// Cycles of the processor's own counters are taken where there are any; virtual machines often have
// none, and then a timer of the kernel's that runs while the thread does. The first event decides,
// so that all samples of a recording have one clock.
//
// An event belongs to one thread. While those of a running process are opened, it may start more:
// they inherit an event, or are found when the list of threads is read again, until it has no new
// one.

#include "values/perf_events.h"

#include "base/fail.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <linux/perf_event.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace values {
namespace {

int open_event(perf_event_attr &attributes, pid_t thread, int cpu) {
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

std::set<pid_t> threads_of(pid_t pid) {
  std::set<pid_t> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator each("/proc/" + std::to_string(pid) + "/task", error),
       end;
       !error && each != end; each.increment(error))
    threads.insert(std::stoi(each->path().filename()));
  return threads;
}

} // namespace

PerfEvents::~PerfEvents() {
  for (int descriptor : descriptors_)
    close(descriptor);
}

bool PerfEvents::open(pid_t thread, int cpu, uint64_t hertz, bool on_exec) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.disabled = 1;
  attributes.inherit = thread > 0;
  attributes.enable_on_exec = on_exec;
  attributes.exclude_idle = 1;
  attributes.exclude_hv = 1;
  int descriptor = -1;
  if (clock_ != "cpu-clock") {
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_CPU_CYCLES;
    attributes.freq = 1;
    attributes.sample_freq = hertz;
    descriptor = open_event(attributes, thread, cpu);
    if (descriptor >= 0)
      clock_ = "cycles";
  }
  if (descriptor < 0 && clock_ != "cycles") {
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.freq = 0;
    attributes.sample_period = 1'000'000'000 / hertz;
    descriptor = open_event(attributes, thread, cpu);
    if (descriptor >= 0)
      clock_ = "cpu-clock";
  }
  if (descriptor < 0) {
    const int error = errno;
    if (error == ESRCH)
      return false;
    if (error == EACCES || error == EPERM)
      base::fail("perf events are closed to this user; run it as root (`assay doctor` says more)");
    if (error == EMFILE)
      base::fail("there are more threads than this process may have files; raise `ulimit -n`");
    base::fail("the kernel gives no perf event: {}; `assay doctor` says more",
               std::strerror(error));
  }
  descriptors_.push_back(descriptor);
  return true;
}

void PerfEvents::open_command(pid_t pid, uint64_t hertz) {
  open(pid, -1, hertz, true);
}

void PerfEvents::open_process(pid_t pid, uint64_t hertz) {
  // Threads that are started meanwhile inherit, or are met in the next round.
  std::set<pid_t> done;
  for (int round = 0; round < 8; round++) {
    bool is_new = false;
    for (pid_t thread : threads_of(pid))
      if (done.insert(thread).second)
        is_new |= open(thread, -1, hertz, false);
    if (!is_new)
      break;
  }
  if (descriptors_.empty())
    base::fail("there is no process {}; name one that runs (`pgrep NAME` lists them)", pid);
}

void PerfEvents::open_all(uint64_t hertz) {
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; cpu++) {
    std::ifstream online("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online");
    int is_online = 1;
    if (online >> is_online && !is_online)
      continue;
    open(-1, cpu, hertz, false);
  }
}

void PerfEvents::enable() const {
  for (int descriptor : descriptors_)
    ioctl(descriptor, PERF_EVENT_IOC_ENABLE, 0);
}

void PerfEvents::disable() const {
  for (int descriptor : descriptors_)
    ioctl(descriptor, PERF_EVENT_IOC_DISABLE, 0);
}

} // namespace values
