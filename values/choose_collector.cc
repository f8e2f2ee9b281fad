// The kernel's comes first: it touches nothing in the program, sees all processes, and costs least.
// Then perf events in the program, which come only while a thread runs its own code. Timers come
// last, because they go off in threads that sleep as well.
//
// Rights are not asked about: the kernel's collector is made, and a perf event is opened. Why one
// could not be had is what the user is told of the choice.

#include "values/choose_collector.h"

#include "abi/records.h"
#include "base/fail.h"
#include "values/kernel_collector.h"
#include "values/upcall_collector.h"

#include <fmt/format.h>

namespace values {
namespace {

// A failure's message without what to do.
std::string reason_of(const base::Failure &failure) {
  const std::string text = failure.what();
  return text.substr(0, text.find("; "));
}

ChosenCollector choose(const SamplingSettings &settings, bool is_command) {
  std::string why;
  if (settings.times_loads) {
    why = "a program in the kernel has no counter of cycles";
  } else {
    try {
      return {kernel_collector(settings), "because this user may run programs in the kernel"};
    } catch (const base::Failure &failure) {
      if (!is_command)
        base::fail("a process that runs, and all processes, can be sampled only by the kernel: "
                   "{}, or record a command: `-- ./app`",
                   failure.what());
      why = reason_of(failure);
    }
  }
  if (const auto closed = why_no_upcall())
    return {upcall_collector(settings, ASSAY_COLLECTOR_TIMER),
            fmt::format("because {}, and {}", why, *closed)};
  return {upcall_collector(settings, ASSAY_COLLECTOR_UPCALL), fmt::format("because {}", why)};
}

} // namespace

ChosenCollector choose_collector(const std::string &name, const SamplingSettings &settings,
                                 bool is_command) {
  if (settings.times_loads && (name == "kernel" || !is_command))
    base::fail("--latency: a program in the kernel has no counter of cycles; write `-- ./app`, and "
               "leave --collector kernel out");
  if (name == "auto")
    return choose(settings, is_command);
  if (name == "kernel")
    return {kernel_collector(settings), "as asked"};
  if (name != "upcall" && name != "timer")
    base::fail(
        "--collector {}: there is no such collector; there are auto, kernel, upcall and timer",
        name);
  if (!is_command)
    base::fail(
        "--collector {}: programs can be sampled from inside only from their begin on; write "
        "`-- ./app`, or record as root with --collector kernel",
        name);
  return {
      upcall_collector(settings, name == "timer" ? ASSAY_COLLECTOR_TIMER : ASSAY_COLLECTOR_UPCALL),
      "as asked"};
}

std::string collector_meaning(uint32_t kind) {
  switch (kind) {
  case ASSAY_COLLECTOR_UPCALL: return "upcall (in the program, by perf events)";
  case ASSAY_COLLECTOR_TIMER: return "timer (in the program, by timers)";
  default: return "kernel (BPF)";
  }
}

} // namespace values
