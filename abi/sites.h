// What the compiler tells the runtime. Of a module: entries in the section `assay_sites`, copied
// verbatim into the profile. Each entry is 8-byte aligned and starts with AssaySite; unknown kinds
// are skipped by size.
//
//   AssaySite  AssaySiteType  name bytes, zero-padded to 8
//   AssaySite  AssaySiteUnit  uint32_t modes[mode_count], zero-padded to 8  source bytes, zero-padded to 8
//
// A type's id is the low 32 bits of a 64-bit hash of its name and layout: 32 bits fit the chunk
// header, and the 64 travel with the name, so that two types with equal ids are told apart by
// module.
#pragma once

#include <stdint.h>

#define ASSAY_SITES_SECTION "assay_sites"

enum {
  ASSAY_SITE_TYPE = 1,     // a type that is allocated somewhere
  ASSAY_SITE_OLD_UNIT = 2, // in files of version 2 and before: see AssaySiteType
  ASSAY_SITE_UNIT = 3,     // an instrumented translation unit
  ASSAY_SITE_RECORD = 4,   // the layout of a struct, class or union (abi/fields.h)
  ASSAY_SITE_FIELDS = 5,   // the counters of field accesses of a translation unit (abi/fields.h)
};

// The mode of the heap tool (-fassay-heap=): how accesses are counted. What the units of a program must agree on is
// the layout.
enum AssayCounters {
  ASSAY_COUNTERS_HALVES = 0,   // 64 bytes of program: 32 bits of reads, 32 bits of writes
  ASSAY_COUNTERS_TOTAL = 1,    // 64 bytes of program: 64 bits of accesses; shown as reads
  ASSAY_COUNTERS_FINE = 2,     // 32 bytes of program: 32 bits of accesses; shown as reads
  ASSAY_COUNTERS_LAYOUT = 3,   // mask of the above
  ASSAY_COUNTERS_GLOBALS = 4,  // globals are counted too, each in blocks of its own
  ASSAY_COUNTERS_STACK = 8,    // stack variables are counted too
  ASSAY_COUNTERS_DYNAMIC = 16, // the base of the shadow is read from __assay_counters_base
};

// The mode of the working set tool (-fassay-workingset=): how lines that were touched are marked. The units of a
// program must agree on the form.
enum AssayLines {
  ASSAY_LINES_BYTES = 0,    // 64 bytes of program: 1 byte, the newest of eight snapshots on top
  ASSAY_LINES_BITS = 1,     // 64 bytes of program: 1 bit
  ASSAY_LINES_HALF = 2,     // 32 bytes of program: 1 byte
  ASSAY_LINES_ENCODING = 3, // mask of the above
  ASSAY_LINES_ACCESSES = 4, // accesses are counted, as a clock
  ASSAY_LINES_DYNAMIC = 8,  // the base of the shadow is read from __assay_lines_base
};

// The mode of the fields tool (-fassay-fields=): what is counted, and whether windows are sampled.
enum AssayFieldsMode {
  ASSAY_FIELDS_COUNTS = 1, // counts alone: no sampled windows, so no affinity and no false sharing
  ASSAY_FIELDS_ADDRESSES =
      2, // computations of fields' addresses are counted, as reads, and no accesses
};

// The mode of the objects tool (-fassay-objects=): what is kept for each word of memory. The units of a program must
// agree on the encoding (abi/word_encoding.h).
enum AssayWords {
  ASSAY_WORDS_BYTES =
      0, // 4 bytes of program: 1 byte, touched since the last sample, and in how many
  ASSAY_WORDS_COUNTERS = 1, // 4 bytes of program: 4 bytes that count accesses
  ASSAY_WORDS_BITS = 2,     // 1 byte of program: 1 bit, touched
  ASSAY_WORDS_LOCALITY =
      4, // 4 bytes of program: 1 byte, in which of the last eight samples touched
  ASSAY_WORDS_ENCODING = 7,   // mask of the above
  ASSAY_WORDS_NO_GLOBALS = 8, // accesses that surely are to globals are left out
  ASSAY_WORDS_STACK = 16,     // local variables are objects, too
  ASSAY_WORDS_DYNAMIC = 32,   // the base of the shadow is read from __assay_words_base
};

// How a hook is to count.
enum AssayAccessFlags {
  ASSAY_ACCESS_READ = 0,
  ASSAY_ACCESS_WRITE = 1,
  ASSAY_ACCESS_ATOMIC = 2, // no update is lost to another thread (-fassay-exact)
  ASSAY_ACCESS_STRING = 4, // __assay_heap_compare: a zero byte ends it too
};

typedef struct AssaySite {
  uint32_t kind;
  uint32_t size; // of the whole entry, this struct included; a multiple of 8
} AssaySite;

typedef struct AssaySiteType {
  uint64_t hash; // low 32 bits: the type id. Of an old unit: its tools (abi/tools.h)
  uint64_t size; // sizeof, in bytes; 0 if unknown. Of an old unit: enum AssayCounters in the low 32
                 // bits, enum AssayLines in the high ones
  uint32_t name_length; // bytes of the name that follow
  uint32_t reserved;    // zero
} AssaySiteType;

typedef struct AssaySiteUnit {
  uint64_t tools;         // abi/tools.h
  uint32_t mode_count;    // modes that follow, one for each bit of a set of tools from bit 0 on
  uint32_t source_length; // bytes of the source's path that follow
} AssaySiteUnit;
