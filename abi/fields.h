// What the compiler says of fields: the layout of each struct, class and union whose fields the
// code accesses, and what each stretch of code of a translation unit accesses. Two kinds of entries
// in the section `assay_sites` (abi/sites.h). Numbers are LEB128 (assay_put_number() in
// abi/lines.h), texts end with a zero byte.
//
// A record is a struct, class or union. Its leaves are its fields with those of nested records in
// their place, so that each byte that is not a hole belongs to a leaf; members of unions overlap.
// An array is one leaf, or the leaves of one element.
//
//   AssaySite  AssaySiteRecord  name  file  leaves…  zero-padded to 8
//     leaf     number  offset, bits from the record's begin
//              number  size, bits; of an array, of all its elements
//              number  enum AssayLeafFlags
//              number  elements: 1, or those of the arrays around it
//              number  bytes from one element to the next; 0 where there is one
//              number  alignment, bytes
//              text    name, as a path: `in.y`, `arr[].x`, `Base::b`
//              text    type
//
//   AssaySite  AssaySiteFields  uint64_t hashes[records]  functions…  derived…  stretches…  zero-padded to 8
//     function text    linkage name
//     derived  number  n: terms that follow; how often something is executed, as a sum
//     term     number  4 i + 2 d + s: counter i if d is 0, the derived of that number, an earlier one, if d is 1; subtracted if s is 1
//     stretch  number  function, from 0
//              number  line
//              number  2 i + d, likewise: how often it is executed
//              number  n: items that follow
//     item     number  record, an index into hashes
//              number  first leaf
//              number  leaves after it that are accessed too
//              number  reads,  number  writes,  number  copied: per execution of the stretch
//              number  b + 8 e. Base b: which pointer of the stretch reaches it, from 0; accesses through one base are of
//                      one object; ASSAY_MAX_BASES: another one. Element e: of a write to an array, which pointer of
//                      the stretch is where it begins, from 1; 0: that is not said
//              number  where the object begins, bytes from that pointer: n of it for 2 n, -n for 2 n - 1
//
// Counters and derived numbers say how often a stretch of code was executed; what was accessed in
// it follows from its items.
#pragma once

#include <stdint.h>

#define ASSAY_FIELDS_SECTION "assay_fields"
#define ASSAY_MAX_LEAVES 4096
#define ASSAY_MAX_BASES 4
#define ASSAY_ITEM_POINTERS(base, element) ((uint64_t)(base) + 8 * (uint64_t)(element))
#define ASSAY_BASE_OF_ITEM(pointers) ((uint32_t)((pointers) % 8))
#define ASSAY_ELEMENT_OF_ITEM(pointers) ((uint32_t)((pointers) / 8))
#define ASSAY_MAX_FIELD_COUNTERS (1u << 20) // of a unit

enum AssayLeafFlags {
  ASSAY_LEAF_BIT_FIELD = 1,
  ASSAY_LEAF_UNION = 2,   // overlaps others: it is inside a union
  ASSAY_LEAF_POINTER = 4, // a pointer or reference
  ASSAY_LEAF_BASE = 8,    // of a base class
  ASSAY_LEAF_HIDDEN = 16, // made by the compiler: the pointer to the virtual functions
  ASSAY_LEAF_ARRAY = 32,  // an array that is one leaf
  // Tools cannot move its declaration alone: the record has no tag, or another member is declared on the same line.
  ASSAY_LEAF_INSEPARABLE = 64,
};

// Instead of an index into hashes.
enum AssayNoRecord {
  ASSAY_RECORD_LOST =
      0, // an access that the source makes to a field, but the optimiser left no trace of which
  ASSAY_RECORD_OTHER = 1, // an access of no field, as far as the source says
  ASSAY_RECORD_FIRST = 2, // index 0 of hashes
};

enum AssayFieldSetKind {
  ASSAY_SET_STRETCH = 0, // in one stretch of code, through one pointer; counted exactly
  ASSAY_SET_WINDOW = 1,  // in one sampled window
};

typedef struct AssaySiteRecord {
  uint64_t hash; // of its name, size and leaves
  uint64_t size; // bytes
  uint32_t line;
  uint32_t leaves;
} AssaySiteRecord;

typedef struct AssaySiteFields {
  int64_t counters; // address of the first counter, from the address of this field on
  int64_t unit;     // address of its AssayFieldsUnit, likewise
  uint32_t count;   // counters
  uint32_t derived;
  uint32_t stretches;
  uint32_t records; // hashes
  uint32_t functions;
  uint32_t reserved;
} AssaySiteFields;

// What the code of a unit reads, and the runtime writes.
typedef struct AssayFieldsUnit {
  uint64_t counters; // where a thread's counters are, less the thread's distance
  // All ones where threads add their distances. 0 before the runtime knows the unit: all threads
  // count in its own counters. Code reads it before `counters`, the runtime writes it behind.
  uint64_t distances;
  // What is 1 while stretches are to be reported: of the linked module, so that its code finds it
  // without this pointer, until __assay_module_end. Null: its code reports nothing.
  uint32_t *asks;
  uint32_t number; // the runtime's, from 1; 0: it does not know the unit
  uint32_t reserved;
} AssayFieldsUnit;

// What code reports of a stretch, in registers, so that its function's frame grows by nothing: its
// number and how many of its pointers are set, in one word.
#define ASSAY_STRETCH_REPORT(stretch, known) ((uint64_t)(stretch) * 8 + (known))
#define ASSAY_REPORTED_STRETCH(report) ((uint32_t)((report) / 8))
#define ASSAY_REPORTED_KNOWN(report) ((uint32_t)((report) % 8))
