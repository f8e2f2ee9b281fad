// Memory that `assay trace` shares with the processes it records: streams of what their threads
// log, and how a process gets the moved code of a module. The tool makes it (a file without a name,
// by ASSAY_TRACE_RING in the environment); every process maps it at its start, and needs no
// descriptor afterwards.
//
//   +----------------------+
//   | AssayTraceRing       |  one
//   | data                 |  ASSAY_RING_STREAMS times ASSAY_RING_BUFFERS buffers; touched by those that are used
//   +----------------------+
//
// A stream is what one thread logs. It has a few buffers, which it fills in turn: a full one is
// handed over (`filled` grows), the tool reads it and gives it back (`freed` grows); whoever uses
// it next sets it to zeros, so that they lie in its processor's cache. A thread whose buffers are
// all full waits for the tool. Nothing of this needs the process to end well: what a killed thread
// has written stays in its buffer.
//
// A buffer holds groups: u32 number of the group plus 1, then its values, 8 bytes each, without
// padding. The number is written last, so that a group is whole or not there: behind the last one
// are zeros. A group that starts a skeleton is followed by what that takes (docs/trace-format.md).
#pragma once

#include <stdint.h>

#define ASSAY_RING_MAGIC "ASSAYRNG"
// Raised with ASSAY_MOVED_VERSION, too: this one is the first to be compared.
#define ASSAY_RING_VERSION 11
#define ASSAY_RING_ENVIRONMENT "ASSAY_TRACE_RING"

#define ASSAY_RING_MARK_BYTES 64 // of a name, with the zero behind it
#define ASSAY_RING_STREAMS 1024
#define ASSAY_RING_BUFFERS 4
#define ASSAY_RING_BUFFER_BYTES (256u << 10)
// A check that finds less room than this takes the next buffer: so much may be logged between two checks.
#define ASSAY_RING_SLACK (64u << 10)

// What a thread logs into; the moved code knows these offsets.
typedef struct AssayLogPosition {
  char *at, *limit;  // the next byte; from `limit` on the next check takes another buffer
  char *start_limit; // the same for checks where a stream may begin
} AssayLogPosition;
typedef struct AssayThreadLog {
  AssayLogPosition groups;   // groups, and what skeletons take
  AssayLogPosition accesses; // each access by itself
  uint64_t spilled[3];       // registers, for the length of a snippet
  uint64_t rax;              // of the program: for what makes use of rax itself
  uint64_t before_loop;      // a register, for the length of a loop of one block
} AssayThreadLog;

// What the moved code logs: a sum of these.
enum {
  ASSAY_LOG_nothing = 0,
  ASSAY_LOG_groups = 1,
  ASSAY_LOG_accesses = 2,
};

enum {
  ASSAY_STREAM_free,
  ASSAY_STREAM_groups,
  ASSAY_STREAM_accesses,
  // The same of a signal handler; `parent` and `parent_bytes` say where it interrupted its thread.
  ASSAY_STREAM_handler_groups,
  ASSAY_STREAM_handler_accesses,
  // In a trace: of a handler of which is known that it has returned to what it interrupted.
  ASSAY_STREAM_returned_groups,
  ASSAY_STREAM_returned_accesses,
};

// The kind while a thread takes the place: this, and the id of the thread (0 where the tool knows
// it by another), so that the place is free again if that is killed meanwhile.
#define ASSAY_RING_CLAIMED (1u << 31)

typedef struct AssayRingBuffer {
  uint64_t begin_ns, end_ns; // CLOCK_MONOTONIC; end_ns 0: not full
  uint32_t bytes;            // logged, where it is handed over
  // So many from its beginning may not be zeros; the process clears them before it logs there. 0:
  // all are zeros, or it is in use.
  uint32_t stale_bytes;
} AssayRingBuffer;

typedef struct AssayRingStream {
  uint32_t kind; // ASSAY_STREAM_*; set last by who takes a free one
  uint32_t process, thread;
  uint32_t number;  // of the streams, in the order in which they began
  uint32_t parent;  // number of the interrupted stream
  uint32_t pair;    // of a stream of accesses: number of that of the same thread's groups
  uint32_t program; // whose mappings hold
  uint32_t
      ended; // number plus 1: nothing more will come. Of another number: it was meant for who had this place before
  uint32_t filled,
      freed; // buffers that were handed over, and given back; a process waits on `freed`
  uint64_t parent_bytes;  // logged in the parent when it was interrupted
  uint64_t fs;            // base of thread-local storage
  uint32_t pid_namespace; // that `process` and `thread` are of; 0: not known
  uint32_t returned;      // number plus 1: its handler has returned to the parent
  uint64_t position; // in the memory of the process: the AssayLogPosition by which the thread logs,
  uint64_t data;     // and the first buffer of this stream
  AssayRingBuffer buffers[ASSAY_RING_BUFFERS];
} AssayRingStream;

enum {
  ASSAY_REQUEST_none,
  ASSAY_REQUEST_module, // moved code for the module `path`
  ASSAY_REQUEST_answered,
};

#define ASSAY_REQUEST_far 0x80000000u // the asker's id is of another namespace

// One at a time: who asks writes its id into `asker`, and takes it out again; where it was ended
// meanwhile, the tool does.
typedef struct AssayTraceRequest {
  uint32_t state;   // ASSAY_REQUEST_*; the asker waits on it
  uint32_t asker;   // process; with ASSAY_REQUEST_far. Others wait on it until it is 0
  uint32_t program; // number of the program that it executes
  uint32_t reserved;
  uint64_t bias; // load bias of the module
  uint32_t is_main;
  uint32_t first_id; // answer: number of the module's first group
  char path[4096];   // of the module; as the kernel says. Empty: the executable of `asker`
  char answer[4096]; // of its moved code (abi/moved_code.h); empty: there is none
} AssayTraceRequest;

typedef struct AssayTraceRing {
  char magic[8];
  uint32_t version;
  uint32_t log;  // sum of ASSAY_LOG_*
  uint32_t tool; // process
  uint32_t
      pid_namespace; // inode number; only processes of the same one are known to each other by their ids
  uint32_t stopped;          // 1: nothing is recorded any more; programs go on
  uint32_t news;             // grows when a buffer or a request has come; the tool waits on it
  uint32_t streams;          // numbers given
  uint32_t untraced_threads; // found no stream
  uint32_t
      wanted; // grows when a thread found none: the tool looks at once for threads that have ended
  uint32_t looks;          // grows when it has done so; a thread that found none waits on it
  uint32_t looks_for_news; // 1: some process may make no system call, so the tool is not woken
  uint32_t polls;          // of the tool, which grow while it is there
  uint32_t filters;        // of system calls, that the tool runs under (proc_text.h)
  uint64_t now_ns;         // CLOCK_MONOTONIC, when it last looked
  uint32_t programs;       // numbers given: one for each exec
  uint32_t gate;           // assay_gate_is_open: whether threads log
  // Marks of programs (assay/annotate.h) that open the gate and close it, by name; empty: none.
  char start_mark[ASSAY_RING_MARK_BYTES], stop_mark[ASSAY_RING_MARK_BYTES];
  uint64_t bytes; // of this file
  AssayTraceRequest request;
  AssayRingStream all[ASSAY_RING_STREAMS];
} AssayTraceRing;

#define ASSAY_RING_DATA ((sizeof(AssayTraceRing) + 4095) & ~(uint64_t)4095) // where buffers begin
#define ASSAY_RING_BYTES                                                                           \
  (ASSAY_RING_DATA + (uint64_t)ASSAY_RING_STREAMS * ASSAY_RING_BUFFERS * ASSAY_RING_BUFFER_BYTES)

// The gate. A thread whose stream began under another value ends it with its next buffer.
#define ASSAY_GATE_OPEN 0u
#define ASSAY_GATE_CLOSED 1u
static inline int assay_gate_is_open(uint32_t gate) {
  return gate % 2 == 0;
}
static inline uint32_t assay_gate_switched(uint32_t gate) {
  return gate + 1;
}
// As open as before, and streams begin anew.
static inline uint32_t assay_gate_renewed(uint32_t gate) {
  return gate + 2;
}

static inline uint64_t assay_ring_buffer(uint32_t stream, uint32_t buffer) {
  return ASSAY_RING_DATA + ((uint64_t)stream * ASSAY_RING_BUFFERS + buffer % ASSAY_RING_BUFFERS) *
                               ASSAY_RING_BUFFER_BYTES;
}
