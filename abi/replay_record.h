// The accesses of a trace for other programs: what `assay trace replay --format binary` writes. One
// header, then records of one size, little endian, in the order in which each thread made its
// accesses.
#pragma once

#include <stdint.h>

#define ASSAY_REPLAY_MAGIC "ASSAYACC"
#define ASSAY_REPLAY_VERSION 1

typedef struct AssayReplayHeader {
  char magic[8];
  uint32_t version;
  uint32_t record_bytes;
} AssayReplayHeader;

typedef struct AssayReplayRecord {
  uint64_t address; // in the process
  uint64_t pc;      // of the instruction, in its file
  uint32_t file;    // number of that file in the trace, from 1
  uint32_t process, thread;
  uint16_t size;      // bytes
  uint8_t kind;       // 'L' read, 'S' written, 'M' read and written by one instruction
  uint8_t in_handler; // 1: a signal handler's
} AssayReplayRecord;
