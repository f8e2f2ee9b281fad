// The live control page: how a tool talks to a running process without signals. The runtime maps
// the file PROGRAM.PID.live beside its profile; a tool opens it, writes a request and waits for the
// answer. The file is removed at the end of the run.
//
//   tool                                   runtime (helper thread)
//   request = ASSAY_REQUEST_SNAPSHOT
//   request_sequence += 1                  sees request_sequence != answer_sequence
//                                          does it, sets answer, answer_sequence = what it has seen
//
// All fields are read and written whole (aligned 8-byte atomics).
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ASSAY_CONTROL_MAGIC 0x314c525443595341ULL // "ASYCTRL1", little-endian

enum {
  ASSAY_REQUEST_NONE = 0,
  ASSAY_REQUEST_SNAPSHOT = 1, // write everything now, live objects included
};

enum {
  ASSAY_ANSWER_DONE = 1,
  ASSAY_ANSWER_FAILED = 2,
};

typedef struct AssayControl {
  uint64_t magic;   // ASSAY_CONTROL_MAGIC, written last
  uint64_t version; // ASSAY_ABI_VERSION
  uint64_t pid;
  uint64_t request;
  uint64_t request_sequence;
  uint64_t answer;
  uint64_t answer_sequence;
  // progress, updated at each flush
  uint64_t elapsed_us;
  uint64_t allocations;
  uint64_t live_bytes;
  uint64_t peak_bytes;
  uint64_t contexts;
  uint64_t profile_bytes;
} AssayControl;

static_assert(sizeof(AssayControl) <= 4096, "the control page is one page");
