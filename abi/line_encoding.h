// Where the mark of a line lies, for each form that a program's lines can have (AssayLines in abi/sites.h).
#pragma once

#include <stdint.h>

#include "abi/shadow.h"
#include "abi/sites.h"

typedef struct AssayLineEncoding {
  uint64_t shift, base; // of the mark's byte, from the program's address
  uint64_t line_bytes;
  uint8_t bits; // 1: a bit for each line; 0: a byte
} AssayLineEncoding;

static inline AssayLineEncoding assay_line_encoding(uint32_t lines) {
  AssayLineEncoding form = {ASSAY_LINES_SHIFT, ASSAY_LINES_BASE, 64, 0};
  switch (lines & ASSAY_LINES_ENCODING) {
  case ASSAY_LINES_BITS:
    form.shift = ASSAY_BITS_SHIFT;
    form.base = ASSAY_BITS_BASE;
    form.bits = 1;
    break;
  case ASSAY_LINES_HALF:
    form.shift = ASSAY_HALF_LINES_SHIFT;
    form.base = ASSAY_HALF_LINES_BASE;
    form.line_bytes = 32;
    break;
  default: break;
  }
  return form;
}
