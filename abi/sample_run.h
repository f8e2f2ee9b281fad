// The interpreter of samples: from where an interrupt came it executes the next instructions
// without any effect, and records what they compute. One source for all who interpret: the BPF
// program in the kernel, the handler in a process, tests.
//
// Registers are those of the interrupt; of vectors nothing is known until they are loaded. Memory
// is read where it is; what is stored stays in a small table and is seen by later loads. What
// depends on a value that is not known is not known; a jump, a branch or an address to store at
// that is not known ends the sample.
//
// Before including, define over `run`, a struct assay_interpreter *:
//
//   ASSAY_SAMPLE_READ(run, to, bytes, address)  1: 1 to 8 bytes were copied from the process's memory; 0: refused
//   ASSAY_SAMPLE_FIND(run, pc)                  1: run->page_number is that of the published page in which pc lies; 0: there
//                                               is none yet
//   ASSAY_SAMPLE_PAGE(run, number)              const struct assay_code_page *, or null
//   ASSAY_SAMPLE_ENTRY(run, index)              const struct assay_uop *, or null
//   ASSAY_SAMPLE_VALUE(uop, a, b, c)            assay_uop_value() or the like
//   ASSAY_SAMPLE_MISS(run, pc)                  tells the tool that the instruction at pc is not known
//
// and, where something is to be recorded of each micro-op that was executed,
//
//   ASSAY_SAMPLE_LOADED(run, uop)               1: the sample ends
#pragma once

#include "abi/sample_state.h"
#include "abi/uop_integer.h"

#ifndef ASSAY_SAMPLE_LOADED
#define ASSAY_SAMPLE_LOADED(run, uop) 0
#endif

// 0xff for each bit.
UOP_FUNCTION uint64_t assay_bytes_of_bits(uint64_t bits) {
  uint64_t each = (bits & 0xff) * 0x0101010101010101 & 0x8040201008040201;
  return ((each + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101) * 0xff;
}

UOP_FUNCTION const struct assay_stored_word *assay_stored_at(const struct assay_interpreter *run,
                                                             uint64_t word) {
  const struct assay_stored_word *at = &run->stored[word & (ASSAY_STORED_WORDS - 1)];
  if (at->sample == run->sample && at->address == word)
    return at;
  at = &run->stored[(word ^ word >> 8 ^ 1) & (ASSAY_STORED_WORDS - 1)];
  return at->sample == run->sample && at->address == word ? at : 0;
}

UOP_FUNCTION int assay_sample_load(struct assay_interpreter *run, uint64_t address, unsigned width,
                                   unsigned reg) {
  uint64_t value = 0, wanted = (1ULL << (width & 15)) - 1, stored = 0, unknown = 0;
  int is_there = ASSAY_SAMPLE_READ(run, &value, width, address);
  if (run->has_stored) {
    uint64_t offset = address & 7, bytes = 0;
    const struct assay_stored_word *word = assay_stored_at(run, address >> 3);
    if (word) {
      bytes = word->bytes >> 8 * offset;
      stored = (uint64_t)word->stored >> offset;
      unknown = (uint64_t)word->unknown >> offset;
    }
    if (offset + width > 8) {
      word = assay_stored_at(run, (address >> 3) + 1);
      if (word) {
        bytes |= word->bytes << (64 - 8 * offset);
        stored |= (uint64_t)word->stored << (8 - offset);
        unknown |= (uint64_t)word->unknown << (8 - offset);
      }
    }
    stored &= wanted;
    uint64_t mask = assay_bytes_of_bits(stored);
    value = (value & ~mask) | (bytes & mask);
  }
  if (!is_there && stored != wanted)
    return 0;
  run->registers[reg & (ASSAY_INTERPRETER_REGISTERS - 1)] = value;
  run->known[reg & (ASSAY_INTERPRETER_REGISTERS - 1)] = (unknown & wanted) == 0;
  return 1;
}

// The bytes of one word that a store covers.
UOP_FUNCTION int assay_sample_store_word(struct assay_interpreter *run, uint64_t word,
                                         uint64_t bytes, uint64_t stored, int known) {
  struct assay_stored_word *at = &run->stored[word & (ASSAY_STORED_WORDS - 1)];
  if (at->sample == run->sample && at->address != word) {
    at = &run->stored[(word ^ word >> 8 ^ 1) & (ASSAY_STORED_WORDS - 1)];
    if (at->sample == run->sample && at->address != word)
      return 0;
  }
  if (at->sample != run->sample) {
    at->sample = run->sample;
    at->address = word;
    at->stored = 0;
    at->unknown = 0;
  }
  uint64_t mask = assay_bytes_of_bits(stored);
  at->bytes = (at->bytes & ~mask) | (bytes & mask);
  at->stored |= (uint8_t)stored;
  at->unknown = (uint8_t)(known ? at->unknown & ~stored : at->unknown | stored);
  run->has_stored = 1;
  return 1;
}

UOP_FUNCTION int assay_sample_store(struct assay_interpreter *run, uint64_t address, unsigned width,
                                    unsigned reg) {
  uint64_t value = run->registers[reg & (ASSAY_INTERPRETER_REGISTERS - 1)];
  int known = run->known[reg & (ASSAY_INTERPRETER_REGISTERS - 1)];
  uint64_t offset = address & 7, stored = ((1ULL << (width & 15)) - 1) << offset;
  if (!assay_sample_store_word(run, address >> 3, value << 8 * offset, stored & 0xff, known))
    return 0;
  return stored >> 8 == 0 ||
         assay_sample_store_word(run, (address >> 3) + 1, value >> (64 - 8 * offset), stored >> 8,
                                 known);
}

#define ASSAY_RUN_STATE struct assay_interpreter
#define ASSAY_RUN_GET(run, reg) (run)->registers[(reg) & (ASSAY_INTERPRETER_REGISTERS - 1)]
#define ASSAY_RUN_KNOWN(run, reg) (run)->known[(reg) & (ASSAY_INTERPRETER_REGISTERS - 1)]
#define ASSAY_RUN_SET(run, reg, value)                                                             \
  do {                                                                                             \
    (run)->registers[(reg) & (ASSAY_INTERPRETER_REGISTERS - 1)] = (value);                         \
    (run)->known[(reg) & (ASSAY_INTERPRETER_REGISTERS - 1)] = 1;                                   \
  } while (0)
#define ASSAY_RUN_FORGET(run, reg) (run)->known[(reg) & (ASSAY_INTERPRETER_REGISTERS - 1)] = 0
#define ASSAY_RUN_LOAD(run, address, width, reg) assay_sample_load(run, address, width, reg)
#define ASSAY_RUN_STORE(run, address, width, reg) assay_sample_store(run, address, width, reg)
#define ASSAY_RUN_VALUE(run, uop, a, b, c) ASSAY_SAMPLE_VALUE(uop, a, b, c)
#define ASSAY_RUN_X87(run, uop) ((void)0) // the publisher leaves these out
#include "abi/uop_run.h"

// Nothing but zero, the bias and how floating point rounds is known.
UOP_FUNCTION void assay_sample_begin(struct assay_interpreter *run) {
  uint64_t *known = (uint64_t *)run->known;
  for (unsigned i = 0; i < ASSAY_PUBLISHED_REGISTERS / 8; i++)
    known[i] = 0;
  run->known[ASSAY_REG_ZERO] = 1;
  run->known[ASSAY_REG_BIAS] = 1;
  run->registers[ASSAY_REG_ZERO] = 0;
  run->page = 1;
  run->key_page = 1;
  run->key_is_kept = 0;
  run->left = 0;
  run->sample++;
  run->has_stored = 0;
  run->out.kind = ASSAY_MESSAGE_SAMPLE;
  run->out.end = ASSAY_ENDED_complete;
  run->out.values = 0;
  run->out.instructions = 0;
  run->out.start = 0;
}

UOP_FUNCTION int assay_sample_end(struct assay_interpreter *run, enum assay_sample_end end) {
  run->out.end = (uint8_t)end;
  return 1;
}

// 1 if there was no room.
UOP_FUNCTION int assay_sample_record(struct assay_interpreter *run, unsigned kind, unsigned detail,
                                     uint64_t value) {
  if (run->skip)
    return 0;
  unsigned at = run->out.values;
  if (at >= ASSAY_SAMPLE_VALUES)
    return assay_sample_end(run, ASSAY_ENDED_many_values);
  struct assay_sampled_value *to = &run->values[at];
  to->where = run->where;
  to->kind = (uint8_t)kind;
  to->detail = (uint8_t)detail;
  to->step = run->out.instructions;
  to->value = value;
  run->out.values = (uint16_t)(at + 1);
  return 0;
}

// The instruction at pc becomes the current one. 1: the sample ends.
UOP_FUNCTION int assay_sample_fetch(struct assay_interpreter *run) {
  int is_new = assay_code_page_begin(run->pc) != run->page;
  if (is_new) {
    if (!ASSAY_SAMPLE_FIND(run, run->pc))
      return assay_sample_end(run, ASSAY_ENDED_no_code);
    run->page = assay_code_page_begin(run->pc);
  }
  const struct assay_code_page *page = ASSAY_SAMPLE_PAGE(run, run->page_number);
  if (!page)
    return assay_sample_end(run, ASSAY_ENDED_no_code);
  run->where = assay_place_in_page(run->page_number, run->pc);
  if (run->out.start == 0)
    run->out.start = run->where;
  if (is_new)
    run->registers[ASSAY_REG_BIAS] = run->page - page->link;
  uint32_t first = page->first[assay_offset_in_page(run->pc)];
  const struct assay_code_head *head =
      (const struct assay_code_head *)ASSAY_SAMPLE_ENTRY(run, first);
  if (first == 0 || !head) {
    ASSAY_SAMPLE_MISS(run, run->pc);
    return assay_sample_end(run, ASSAY_ENDED_no_code);
  }
  if (is_new || !page->is_stable) {
    uint64_t bytes = 0, expected = *(const uint64_t *)head->bytes;
    unsigned length = head->length < 8 ? head->length : 8;
    if (!ASSAY_SAMPLE_READ(run, &bytes, length, run->pc) || bytes != expected) {
      ASSAY_SAMPLE_MISS(run, run->pc);
      return assay_sample_end(run, ASSAY_ENDED_other_code);
    }
  }
  run->next_pc = run->pc + head->length;
  run->left = head->uops;
  run->entry = first + 1;
  return 0;
}

// An instruction is done. 1: the sample ends.
UOP_FUNCTION int assay_sample_retire(struct assay_interpreter *run) {
  run->left = 0;
  run->pc = run->next_pc;
  if (run->skip) {
    run->skip--;
    return 0;
  }
  run->out.instructions++;
  return run->out.instructions >= run->limit;
}

// The return address at a register + offset is recorded, if it can be read.
UOP_FUNCTION int assay_sample_caller(struct assay_interpreter *run, unsigned reg, int64_t offset) {
  if (run->skip || !ASSAY_RUN_KNOWN(run, reg))
    return 0;
  // A temporary register takes the word, as any load would.
  if (!assay_sample_load(run, ASSAY_RUN_GET(run, reg) + (uint64_t)offset, 8,
                         ASSAY_REG_TEMPORARIES) ||
      !run->known[ASSAY_REG_TEMPORARIES])
    return 0;
  return assay_sample_record(run, ASSAY_VALUE_caller, 8, run->registers[ASSAY_REG_TEMPORARIES]);
}

// What a function is entered with.
UOP_FUNCTION int assay_sample_entry(struct assay_interpreter *run, uint64_t arguments) {
  static const uint8_t order[6] = {ASSAY_REG_RDI, ASSAY_REG_RSI, ASSAY_REG_RDX,
                                   ASSAY_REG_RCX, ASSAY_REG_R8,  9};
  for (unsigned i = 0; i < 6; i++) {
    unsigned reg = order[i];
    if ((arguments >> reg & 1) && run->known[reg] &&
        assay_sample_record(run, ASSAY_VALUE_argument, i, run->registers[reg]))
      return 1;
  }
  if (!(arguments >> 16 & 1))
    return 0;
  return assay_sample_caller(run, ASSAY_REG_RSP, 0);
}

// One step: begins an instruction, or executes one of its entries. 1: the sample ends, run->out.end says how.
UOP_FUNCTION int assay_sample_step(struct assay_interpreter *run) {
  if (run->left == 0) {
    if (assay_sample_fetch(run))
      return 1;
    return run->left == 0 && assay_sample_retire(run);
  }
  const struct assay_uop *uop = ASSAY_SAMPLE_ENTRY(run, run->entry);
  if (!uop)
    return assay_sample_end(run, ASSAY_ENDED_no_code);
  run->entry++;
  run->left--;
  if (uop->op < ASSAY_UOP_COUNT) {
    switch (assay_run_uop(run, uop, &run->next_pc)) {
    case ASSAY_RUN_NEXT:
      if (ASSAY_SAMPLE_LOADED(run, uop))
        return 1;
      break;
    case ASSAY_RUN_JUMP: run->left = 0; break;
    case ASSAY_RUN_FAULT:
      return assay_sample_end(run, uop->op == ASSAY_UOP_store || uop->op == ASSAY_UOP_store_if
                                       ? ASSAY_ENDED_many_stores
                                       : ASSAY_ENDED_no_memory);
    case ASSAY_RUN_OPAQUE: return assay_sample_end(run, ASSAY_ENDED_unknown_instruction);
    case ASSAY_RUN_UNKNOWN: return assay_sample_end(run, ASSAY_ENDED_unknown_value);
    }
  } else if (uop->op == ASSAY_PUBLISHED_VALUE) {
    if (ASSAY_RUN_KNOWN(run, uop->dst) &&
        assay_sample_record(run, (unsigned)uop->i, uop->width, ASSAY_RUN_GET(run, uop->dst)))
      return 1;
  } else if (uop->op == ASSAY_PUBLISHED_LOAD || uop->op == ASSAY_PUBLISHED_STORE) {
    if (ASSAY_RUN_KNOWN(run, uop->a) && ASSAY_RUN_KNOWN(run, uop->b) &&
        ASSAY_RUN_KNOWN(run, uop->c) &&
        assay_sample_record(
            run,
            uop->op == ASSAY_PUBLISHED_LOAD ? ASSAY_VALUE_load_address : ASSAY_VALUE_store_address,
            uop->width,
            assay_run_address(uop, ASSAY_RUN_GET(run, uop->a), ASSAY_RUN_GET(run, uop->b),
                              ASSAY_RUN_GET(run, uop->c))))
      return 1;
  } else if (uop->op == ASSAY_PUBLISHED_ENTRY) {
    if (assay_sample_entry(run, (uint64_t)uop->imm))
      return 1;
  } else if (uop->op == ASSAY_PUBLISHED_CALLER) {
    if (assay_sample_caller(run, uop->a, uop->i))
      return 1;
  } else if (uop->op == ASSAY_PUBLISHED_FORGET) {
    ASSAY_RUN_FORGET(run, uop->dst);
  } else {
    return assay_sample_end(run, (enum assay_sample_end)(uop->imm & 0xff));
  }
  return run->left == 0 && assay_sample_retire(run);
}
