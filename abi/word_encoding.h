// What the objects tool keeps for each word of memory, and where, for each form that a program's
// words can have (AssayWords in abi/sites.h).
//
//   form       of 4 bytes of program         place of its first byte
//   byte       1 byte                        (address >> 2) + 0x60000000
//                7      accessed since the last sample
//                6..0   in how many samples before, up to 127; then a part of it lies in a table
//   locality   1 byte                        the same
//                7      accessed since the last sample
//                6..0   in each of the seven samples before, the newest on top
//   counter    4 bytes, accesses             (address & 0x0fff'fffffffc) + 0x1000'60000000
//   bit        4 bits, one for each byte     (address >> 3) + 0x0800'60000000
//
// Only `byte` and `locality` have a base that fits a displacement. The others lie where the words
// of `byte` would: no program has two forms. Addresses of counters are folded to 44 bits, because
// counters as large as the program have no room otherwise; the windows that programs live in
// (abi/shadow.h) stay apart.
//
// Source: cache-fragmentation.txt, "Shadow memory", and its last paragraph.
#pragma once

#include <stdint.h>

#include "abi/shadow.h"
#include "abi/sites.h"

#define ASSAY_WORD_BYTES 4ULL

// Of a byte of the shadow.
#define ASSAY_WORD_TOUCHED 0x80
#define ASSAY_WORD_SAMPLES 0x7f

typedef struct AssayWordEncoding {
  uint64_t mask;       // of the program's address, first
  uint64_t shift;      // then
  uint64_t base;       // then, unless the base is dynamic
  uint64_t unit_bytes; // of program that are told apart
} AssayWordEncoding;

static inline AssayWordEncoding assay_word_encoding(uint32_t words) {
  AssayWordEncoding form = {~0ULL, ASSAY_WORDS_SHIFT, ASSAY_WORDS_BASE, ASSAY_WORD_BYTES};
  if (words & ASSAY_WORDS_COUNTERS) {
    form.mask = 0x0ffffffffffcULL;
    form.shift = 0;
    form.base = 0x100060000000ULL;
  } else if (words & ASSAY_WORDS_BITS) {
    form.shift = 3;
    form.base = 0x080060000000ULL;
    form.unit_bytes = 1;
  }
  return form;
}

// Bytes of shadow for all addresses below ASSAY_HIGH_END.
static inline uint64_t assay_words_span(AssayWordEncoding form) {
  return (((ASSAY_HIGH_END - 1) & form.mask) >> form.shift) + 8;
}

static inline uint64_t assay_word_place(AssayWordEncoding form, uint64_t address) {
  return ((address & form.mask) >> form.shift) + form.base;
}
