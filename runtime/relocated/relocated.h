// The runtime of `assay trace`: maps moved code (abi/moved_code.h) into an unmodified program, and gives its threads buffers to
// log into (abi/trace_ring.h). A library of its own, preloaded; it shares nothing with the runtime of instrumented programs but
// system calls.
#pragma once

#include "abi/moved_code.h"
#include "abi/trace_ring.h"

#include <link.h>

namespace assay::relocated {

// Null where the process is not recorded.
extern AssayTraceRing *ring;
// Of the program that this process executes; its children's as well.
extern uint32_t program_number;

// A module whose functions were moved.
struct MovedModule {
  const AssayMovedHeader *header; // the file, mapped
  const AssayMovedReturn *returns;
  char *code; // where it lies
  uint64_t image, bias;
};
constexpr uint32_t kMostModules = 512;
extern MovedModule modules[kMostModules];
extern uint32_t module_count;
// The one whose moved code has this address, or null.
const MovedModule *module_at(const void *address);
// The original's return address for one in moved code; others as they are.
void *original_of(void *address);

// Moves what the tool says of a module that was just loaded. `path` as the loader says it, empty for the executable.
void move_module(const char *path, uint64_t bias, const ElfW(Phdr) * headers, uint32_t count);
// All that are loaded; once, at the start.
void move_modules();

// Streams (streams.cc).
void begin_streams();
// What a signal handler logs goes to streams of its own: saved where it begins, restored where it returns.
struct SavedLog {
  AssayThreadLog log;
  uint32_t streams[2];
  bool in_handler;
};
void begin_handler(SavedLog &saved);
void end_handler(const SavedLog &saved);

// "assay: TEXT" on standard error.
void say(const char *text);

} // namespace assay::relocated
