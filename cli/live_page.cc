// Finding and using the page by which a running program takes requests.
//
// /proc/PID/maps names the mapped file, wherever the program put it; guessing by folder was
// refused, since the program may have changed its directory and its options. Several tools may ask
// at once: the sequence is raised with one atomic addition, and an answer to a later request
// answers this one too.

#include "cli/live_page.h"

#include "base/fail.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace cli {
namespace {

// By SIGSTOP, or in a debugger.
bool is_stopped(uint64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = stat.rfind(") "); // the state stands behind it
  return name_end != std::string::npos && (stat[name_end + 2] == 'T' || stat[name_end + 2] == 't');
}

} // namespace

LivePage::LivePage(const std::string &path) : path_(path) {
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    base::fail("{}: the control page cannot be opened: {}; run as the owner of the process", path,
               std::strerror(errno));
  struct stat status;
  void *mapped = MAP_FAILED;
  if (fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(AssayControl)))
    mapped = mmap(nullptr, sizeof(AssayControl), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED)
    base::fail("{}: it is too short for a control page; wait until the program has started", path);
  page_ = static_cast<AssayControl *>(mapped);
  if (__atomic_load_n(&page_->magic, __ATOMIC_ACQUIRE) != ASSAY_CONTROL_MAGIC) {
    munmap(page_, sizeof(*page_));
    base::fail("{}: it is not the control page of a profiled program; check the process id", path);
  }
}

LivePage::~LivePage() {
  munmap(page_, sizeof(*page_));
}

AssayControl LivePage::read() const {
  AssayControl copy;
  std::memcpy(&copy, page_, sizeof(copy));
  return copy;
}

void LivePage::ask(uint64_t request, unsigned seconds) {
  using Clock = std::chrono::steady_clock;
  uint64_t pid = page_->pid;
  __atomic_store_n(&page_->request, request, __ATOMIC_RELEASE);
  uint64_t mine = __atomic_add_fetch(&page_->request_sequence, 1, __ATOMIC_ACQ_REL);
  const auto begin = Clock::now(), end = begin + std::chrono::seconds(seconds);
  while (__atomic_load_n(&page_->answer_sequence, __ATOMIC_ACQUIRE) < mine) {
    if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      base::fail("process {} ended before it answered; its profile is beside {}", pid, path_);
    const auto now = Clock::now();
    if (now - begin > std::chrono::seconds(1) && is_stopped(pid))
      base::fail(
          "process {} is stopped, by a signal or by a debugger; let it go on (kill -CONT {}) "
          "and ask again",
          pid, pid);
    if (now > end)
      base::fail("process {} did not answer within {} s; was it started with sideline=0?", pid,
                 seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (__atomic_load_n(&page_->answer, __ATOMIC_ACQUIRE) != ASSAY_ANSWER_DONE)
    base::fail("process {} could not write its profile; see its standard error for the reason",
               pid);
}

std::string live_page_of(int pid) {
  if (pid <= 0) // no process has such an id; kill would mean a group
    base::fail("there is no process {}; check the process id", pid);
  errno = 0;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  if (!maps) {
    const int error = errno;
    if (kill(pid, 0) != 0 && errno == ESRCH)
      base::fail("there is no process {}; check the process id", pid);
    if (geteuid() == 0)
      base::fail("the memory map of process {} may not be read: {}; in a container root has to be "
                 "given the capability SYS_PTRACE",
                 pid, std::strerror(error));
    base::fail("the memory map of process {} may not be read: {}; run as its owner", pid,
               std::strerror(error));
  }
  constexpr std::string_view kSuffix = ".live";
  for (std::string line; std::getline(maps, line);) {
    size_t slash = line.find('/');
    if (slash != std::string::npos && line.ends_with(kSuffix))
      return line.substr(slash);
  }
  base::fail("process {} has no control page; it was not built with assay-cc, or has just started",
             pid);
}

} // namespace cli
