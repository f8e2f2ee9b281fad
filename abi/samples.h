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
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning) ASSAY_VALUE_##name,
#include "abi/value_kinds.def"
  ASSAY_VALUE_KINDS
};

enum assay_value_what {
  ASSAY_VALUE_IS_number,
  ASSAY_VALUE_IS_address, // of memory: differences between executions are strides
  ASSAY_VALUE_IS_truth,   // 1 or 0
  ASSAY_VALUE_IS_code,    // an address in code, which becomes a place in a file
  ASSAY_VALUE_IS_levels,  // a set of few things, all of which are shown
};

enum assay_message_kind {
  ASSAY_MESSAGE_SAMPLE = 1, // struct assay_sample and its values
  ASSAY_MESSAGE_MISS,       // struct assay_miss
};

struct assay_sampled_value {
  uint32_t where; // assay_place_in_page() of abi/published_code.h
  uint8_t kind;   // enum assay_value_kind
  // Of a result its register and which bytes of it, assay_result_detail(); of a load and a divisor
  // its bytes; of an argument its number from 0; of the others 8, of a branch 1.
  uint8_t detail;
  uint16_t step; // the instruction's number in the sample, from 0
  uint64_t value;
};

// The `detail` of a result: its register, by enum assay_uop_register, and above it which part.
//
//   bit   7 6 5 | 4 … 0       part 0, 1, 2, 3: the lowest 1, 2, 4, 8 bytes
//         part  | register    part 4: one byte, the second one (ah)
#define ASSAY_RESULT_SECOND_BYTE 4

static inline unsigned assay_result_detail(unsigned reg, unsigned bytes) {
  unsigned part = bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;
  return reg | part << 5;
}
static inline unsigned assay_second_byte_detail(unsigned reg) {
  return reg | ASSAY_RESULT_SECOND_BYTE << 5;
}
static inline unsigned assay_result_register(unsigned detail) {
  return detail & 31;
}
static inline int assay_is_second_byte(unsigned detail) {
  return detail >> 5 == ASSAY_RESULT_SECOND_BYTE;
}
static inline unsigned assay_result_bytes(unsigned detail) {
  return 1u << (detail >> 5 & 3);
}
static inline unsigned assay_access_bytes(unsigned detail) {
  return detail < 1 ? 1 : detail > 8 ? 8 : detail;
}

// Of a kind that is not known: eight bytes, a number.
static inline unsigned assay_value_bytes(unsigned kind, unsigned detail) {
  switch (kind) {
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning)                                \
  case ASSAY_VALUE_##name: return bytes;
#include "abi/value_kinds.def"
  default: return 8;
  }
}
static inline enum assay_value_what assay_value_is(unsigned kind) {
  switch (kind) {
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning)                                \
  case ASSAY_VALUE_##name: return ASSAY_VALUE_IS_##what;
#include "abi/value_kinds.def"
  default: return ASSAY_VALUE_IS_number;
  }
}

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
