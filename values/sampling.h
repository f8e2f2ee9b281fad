// What the tool and its BPF program agree on beside abi/: settings and counts.
#pragma once

#include <stdint.h>

#define ASSAY_FLAGS 0x8d5u // CF, PF, AF, ZF, SF, OF

struct assay_sampling_settings {
  uint32_t instructions;     // of a sample, on average
  uint32_t is_random_length; // 1: from 1 to twice the average
  uint32_t most_skipped; // instructions before the first that is recorded: fewer than this; 0: none
  uint32_t most_steps;   // micro-ops of a sample
  uint32_t own_pid;      // which is not sampled
  uint32_t reserved;
  uint64_t miss_interval_ns; // in which a place that is not known is told of once
};

#define ASSAY_GIVEN_REGISTERS                                                                      \
  20 // general registers, flags, segment bases: those up to ASSAY_REG_GS

struct assay_given_sample {
  uint64_t registers[ASSAY_GIVEN_REGISTERS];
  uint64_t pc;
  uint32_t skip, instructions;
};

struct assay_sampling_counts {
  uint64_t samples;      // events that came
  uint64_t in_kernel;    // of these, in the kernel
  uint64_t lost_samples; // for which the buffer had no room
  uint64_t lost_misses;
  uint64_t no_mapping; // whose mapping could not be looked up
};
