// Which collector takes the samples.
#pragma once

#include "values/collector.h"

#include <memory>
#include <string>

namespace values {

struct ChosenCollector {
  std::unique_ptr<Collector> collector;
  std::string why; // a phrase: "because …"; "as asked"
};

// `name` as users write it: "auto", "kernel", "upcall", "timer". Of a process that runs and of all
// processes (`is_command` false) only the kernel can take samples. Throws Failure, one sentence,
// where none is possible or the one that was asked for is not.
ChosenCollector choose_collector(const std::string &name, const SamplingSettings &settings,
                                 bool is_command);

// "kernel (BPF)", "upcall (in the program, by perf events)": where samples of a collector (enum
// AssayCollector) are interpreted.
std::string collector_meaning(uint32_t kind);

} // namespace values
