// What `assay doctor` looks at, one function a line of its answer.
#pragma once

#include <string>

namespace cli {

struct Health {
  enum State { ok, missing, limited } state;
  std::string found;  // what is there, a phrase
  std::string remedy; // the command that mends it; empty when ok
};

// What is installed, and trials: cli/doctor_trials.cc.
Health clang_health();
Health plugin_health();
Health runtime_health();
Health trial_health();
Health symbolizer_health();
Health reordering_health();
Health values_health();
Health values_kernel_health();
Health values_upcall_health();
Health trace_health();

// What the kernel and the shell allow: cli/doctor_limits.cc.
Health address_space_health();
Health overcommit_health();
Health limits_health();
Health proc_health();
Health disk_health();
Health perf_events_health();
Health bpf_health();
Health values_timer_health();
Health ptrace_health();
bool has_proc();

} // namespace cli
