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

// The kernel's own memory that may be read without an effect: its image, its modules' code, RAM.
// Stacks come beside them.
#define ASSAY_KERNEL_RANGES 8

struct assay_memory_range {
  uint64_t begin, end;
};

struct assay_kernel_memory {
  uint64_t per_cpu_offsets; // address of an array: where each cpu's own memory lies; 0: not known
  uint32_t is_interpreted;  // 0: samples that come in the kernel are counted
  uint32_t ranges;
  uint32_t first_ram; // of the ranges: those of the direct map, up to the last one
  uint32_t reserved;
  struct assay_memory_range range[ASSAY_KERNEL_RANGES];
};

// What the tool asks for: code to decode.
#define ASSAY_KERNEL_BYTES 256

struct assay_kernel_bytes {
  uint64_t address;
  uint64_t task; // answer: the caller's own struct task_struct
  int64_t error; // answer: 0, or why the bytes could not be read
  uint8_t bytes[ASSAY_KERNEL_BYTES];
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
