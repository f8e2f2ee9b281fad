// The records of abi/records.def as C: numbers and fixed parts.
#pragma once

#include "abi/container.h"
#include "abi/hib.h"
#include "abi/object_sums.h"

// One 64-byte block of memory that is not the heap's. offset: of a module's globals, the address in
// the ELF image of the block's first byte (a multiple of 64 once the module is mapped); of a stack,
// bytes from the stack's top down to the block's first byte.
typedef struct AssayBlockCounts {
  uint64_t offset;
  uint64_t reads, writes;
} AssayBlockCounts;

// A value in a hotlist (profile/hotlist.h).
typedef struct AssayHotEntry {
  uint64_t value;
  uint64_t count;
  uint64_t error;
  uint64_t squares;
  uint64_t cross;
} AssayHotEntry;

enum AssayRecordKind {
#define ASSAY_RECORD(Name, number, meaning) ASSAY_RECORD_##Name = number,
#define ASSAY_FIELD(type, name, meaning)
#define ASSAY_TAIL(element, name, meaning)
#define ASSAY_END(Name)
#include "abi/records.def"
};

#define ASSAY_RECORD(Name, number, meaning) typedef struct Assay##Name {
#define ASSAY_FIELD(type, name, meaning) type name;
#define ASSAY_TAIL(element, name, meaning)
#define ASSAY_END(Name)                                                                            \
  }                                                                                                \
  Assay##Name;                                                                                     \
  static_assert(sizeof(Assay##Name) % 8 == 0, "the fixed part of " #Name " is a multiple of 8");
#include "abi/records.def"

enum AssayEndReason {
  ASSAY_END_EXIT = 1,   // exit, or return from main
  ASSAY_END_QUICK = 2,  // _exit, _Exit, quick_exit
  ASSAY_END_SIGNAL = 3, // a fatal signal; status is its number
  ASSAY_END_EXEC = 4,   // the process became another program
};

enum AssayOriginKind {
  ASSAY_ORIGIN_POOL = 1, // assay_register_pool
  ASSAY_ORIGIN_MMAP = 2, // anonymous mmap, with the option mmap=1
};

enum AssayNonHeapKind {
  ASSAY_NON_HEAP_GLOBALS = 1,
  ASSAY_NON_HEAP_STACK = 2,
};

enum AssayCollector {
  ASSAY_COLLECTOR_KERNEL = 1, // a BPF program
  ASSAY_COLLECTOR_UPCALL = 2, // a handler in the process, called by perf events
  ASSAY_COLLECTOR_TIMER = 3,  // a handler in the process, called by timers
};

enum AssaySamplingScope {
  ASSAY_SAMPLING_COMMAND = 1, // a program that the recording started
  ASSAY_SAMPLING_PROCESS = 2, // one that was running
  ASSAY_SAMPLING_SYSTEM = 3,  // all processes
  ASSAY_SAMPLING_PART = 4,    // of all processes, what belongs to one executable
};

enum AssayConflictKind {
  ASSAY_CONFLICT_FORWARDING =
      1, // the load reads more than the store has written: it cannot be forwarded
  ASSAY_CONFLICT_ALIAS = 2, // the addresses differ, their low 12 bits overlap
  ASSAY_CONFLICT_ORDER = 3, // the load may run before the store's address is known, and overlaps it
};

enum AssayTraceEndReason { // AssayTraceEnd::why
  ASSAY_TRACE_ENDED = 0,   // with the program
  ASSAY_TRACE_STOPPED = 1, // before it
};

enum AssayLossKind {
#define ASSAY_LOSS(name, number, unit, what, remedy) ASSAY_LOSS_##name = number,
#include "abi/losses.def"
  ASSAY_LOSS_KINDS = 64 // the runtime counts kinds below it
};
#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  static_assert((number) < ASSAY_LOSS_KINDS, "too many kinds of loss");
#include "abi/losses.def"
