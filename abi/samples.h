// What a sample is: an interrupt's place, and the values of the instructions that were interpreted
// from there. Written by who interprets (the BPF program, the handler in a process), read by the
// tool.
#pragma once

#include <stdint.h>

#define ASSAY_SAMPLE_VALUES 512 // most values of one sample

// How interpreting a sample ended.
enum assay_sample_end {
#define ASSAY_SAMPLE_END(name, meaning) ASSAY_ENDED_##name,
#include "abi/sample_ends.def"
  ASSAY_SAMPLE_ENDS
};

enum assay_value_kind {
#define ASSAY_VALUE_KIND(name, word, meaning) ASSAY_VALUE_##name,
#include "abi/value_kinds.def"
  ASSAY_VALUE_KINDS
};

enum assay_message_kind {
  ASSAY_MESSAGE_SAMPLE = 1, // struct assay_sample and its values
  ASSAY_MESSAGE_MISS,       // struct assay_miss
};

struct assay_sampled_value {
  uint32_t where; // assay_place_in_page() of abi/published_code.h
  uint8_t kind;   // enum assay_value_kind
  uint8_t
      detail; // of a result: its register; of an access: its bytes; of an argument: its number from 0
  uint16_t step; // the instruction's number in the sample, from 0
  uint64_t value;
};

struct assay_sample {
  uint32_t kind; // ASSAY_MESSAGE_SAMPLE
  uint32_t pid, tid;
  uint8_t end; // enum assay_sample_end
  uint8_t in_kernel;
  uint16_t values;
  uint32_t start;   // where it began, as in struct assay_sampled_value; 0: the page is not known
  uint16_t skipped; // instructions that were interpreted before the first that was recorded
  uint16_t instructions; // that were recorded
  uint64_t pc;           // where the interrupt came
};

// Code that is not known yet: of a new page, or at a new place of one.
struct assay_miss {
  uint32_t kind; // ASSAY_MESSAGE_MISS
  uint32_t pid, tid;
  uint32_t in_kernel;
  uint64_t address;
  uint64_t page, file; // as in struct assay_code_key
  uint32_t device, version;
};
