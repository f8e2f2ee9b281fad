// Perf events as a clock for samples: of a command, a process with its threads, or all processors.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace values {

class PerfEvents {
public:
  PerfEvents() = default;
  ~PerfEvents();
  PerfEvents(const PerfEvents &) = delete;
  PerfEvents &operator=(const PerfEvents &) = delete;

  // Events that are off. Of a command, a process that waits to execute it; they begin with that,
  // and its children inherit them. Throw Failure, one sentence that says what the kernel refused.
  void open_command(pid_t pid, uint64_t hertz);
  // Of all threads that the process has, and those that they start.
  void open_process(pid_t pid, uint64_t hertz);
  void open_all(uint64_t hertz);

  const std::vector<int> &descriptors() const { return descriptors_; }
  void enable() const;
  void disable() const;
  // What makes interrupts: "cycles" of the processor's counters, or "cpu-clock", a timer, where there are none.
  const std::string &clock() const { return clock_; }

private:
  // False if the thread is gone.
  bool open(pid_t thread, int cpu, uint64_t hertz, bool on_exec);
  std::vector<int> descriptors_;
  std::string clock_;
};

} // namespace values
