// Samples that the kernel interprets: the program values/sample.bpf.c on perf events.
#pragma once

#include "values/collector.h"

#include <memory>

namespace values {

// Throws Failure, one sentence that says what is missing, where the kernel or the user's rights do not allow it.
std::unique_ptr<Collector> kernel_collector(const SamplingSettings &settings);

} // namespace values
