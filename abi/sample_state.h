// What an interpreter of samples (abi/sample_run.h) keeps: of one sample at a time.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"

#define ASSAY_INTERPRETER_REGISTERS 512 // a power of two
#define ASSAY_STORED_WORDS 256          // a power of two

// Eight bytes of memory, some of which the sample has stored.
struct assay_stored_word {
  uint64_t address; // of the first byte / 8
  uint64_t bytes;
  uint32_t sample; // in which it was stored
  uint8_t stored;  // a bit each byte
  uint8_t unknown; // of these, those whose value is not known
  uint16_t reserved;
};

struct assay_interpreter {
  uint64_t registers[ASSAY_INTERPRETER_REGISTERS]; // by enum assay_uop_register
  uint8_t known[ASSAY_INTERPRETER_REGISTERS];
  struct assay_stored_word stored[ASSAY_STORED_WORDS];

  uint64_t pc;
  uint64_t next_pc;
  uint64_t page; // the address whose page is page_number; 1: none
  uint32_t page_number;
  uint32_t entry; // the next one of the instruction
  uint32_t left;  // entries of the instruction
  uint32_t where; // of the instruction, as in struct assay_sampled_value
  uint32_t sample;
  uint32_t has_stored;
  uint32_t skip;      // instructions that are left before the first that is recorded
  uint32_t limit;     // instructions that are to be recorded
  uint32_t in_kernel; // 1: of the kernel's own code; 2: and it came to memory that must not be read
  uint32_t memory; // tells address spaces of one process apart (exec); for who looks pages up by it
  uint32_t remapped; // of `memory`: how often something else was found where the process had code
  uint32_t changes;  // of what the process has mapped, as the kernel counts them
  uint32_t counts_changes; // 0: it does not
  uint64_t key_page; // the address whose page `key` is of; 1: none. For who looks pages up by it
  struct assay_code_key key;
  uint32_t key_is_kept; // from an earlier sample: what lies there may have changed since
  uint64_t stack,
      stack_page; // of the kernel's code: its task's stack, and a page of the one that is used
  struct assay_sample out;
  struct assay_sampled_value values[ASSAY_SAMPLE_VALUES];
};

// Behind how many instructions the recording begins, and how many it takes: as chance has it. On average it takes
// `instructions`, where its length is random.
static inline void assay_draw_sample(struct assay_interpreter *run, uint32_t most_skipped,
                                     uint32_t instructions, uint32_t is_random_length,
                                     uint32_t random) {
  run->skip = (random & 0xffff) % (most_skipped + 1);
  run->limit = is_random_length ? 1 + (random >> 16) % (2 * instructions - 1) : instructions;
  run->out.skipped = (uint16_t)run->skip;
}
