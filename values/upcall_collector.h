// Samples that a program takes of itself: its threads interpret in a handler of SIGTRAP
// (runtime/upcall), for users who may not run programs in the kernel. Of commands alone, which it
// must begin with.
#pragma once

#include "values/collector.h"

#include <memory>
#include <optional>

namespace values {

// Why this user may have no perf event that sends a signal to its thread; nothing if it may.
std::optional<std::string> why_no_upcall();

// `kind`: what interrupts threads, ASSAY_COLLECTOR_UPCALL (perf events) or ASSAY_COLLECTOR_TIMER.
// Throws Failure where that cannot be.
std::unique_ptr<Collector> upcall_collector(const SamplingSettings &settings, uint32_t kind);

} // namespace values
