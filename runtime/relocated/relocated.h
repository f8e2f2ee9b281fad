// The runtime of `assay trace`: maps moved code (abi/moved_code.h) into an unmodified program, and
// gives its threads buffers to log into (abi/trace_ring.h). It shares nothing with the runtime of
// instrumented programs but system calls.
//
// It is built twice. The files here are in both: a library that is preloaded (preloaded/), and one
// that statically linked executables carry (carried/), which has no libc and no loader to ask.
#pragma once

#include "abi/moved_code.h"
#include "abi/trace_ring.h"

#include <link.h>
#include <signal.h>
#include <ucontext.h>

namespace assay::relocated {

// Null where the process is not recorded.
extern AssayTraceRing *ring;
// Maps what the environment names; false if it names nothing or, which is said, it cannot be mapped.
bool open_ring(char **environment);
// Of the program that this process executes; its children's as well.
extern uint32_t program_number;
// That this process's id is of (abi/trace_ring.h).
extern uint32_t pid_namespace;

// A module whose functions were moved.
struct MovedModule {
  const AssayMovedHeader *header; // the file, mapped
  const AssayMovedReturn *returns;
  char *code; // where it lies
  uint64_t image, bias;
};
constexpr uint32_t kMaxModules = 512;
extern MovedModule modules[kMaxModules];
extern uint32_t module_count;
// The one whose moved code has this address, or null.
const MovedModule *module_at(const void *address);
// The original's return address for one in moved code; others as they are.
void *original_of(void *address);

// Moves what the tool says of a module that was just loaded; null if it is not moved. `path` as the
// loader says it, empty for the executable.
const MovedModule *move_module(const char *path, uint64_t bias, const ElfW(Phdr) * headers,
                               uint32_t count);
// Puts the jumps to its moved code into a module that was loaded again at the same place.
void redirect(const MovedModule &module, const ElfW(Phdr) * headers, uint32_t count);

// Memory for moved code that reaches all of the original, and is reached from there; null, and says
// why, if there is none.
char *room_for_code(const AssayMovedHeader &moved, uint64_t bias);

// Modules that come and go (preloaded/modules_loaded.cc): moves those that are new.
void move_modules();
// Has the loader call move_modules() when it has opened or closed some.
void follow_loader();

// Streams (streams.cc, handler_streams.cc).
extern constinit thread_local AssayThreadLog thread_log [[gnu::tls_model("initial-exec")]];
void begin_streams();
// What a signal handler logs goes to streams of its own: saved where it begins, restored where it returns.
struct SavedLog {
  AssayThreadLog log;
  uint32_t streams[2], parent[2];
  uint64_t parent_bytes[2];
  uint32_t forks; // from the first process to this one
  bool in_handler, is_paused;
  bool is_listed[2]; // what it interrupted is in the thread's list by this
};
void begin_handler(SavedLog &saved, const ucontext_t &interrupted);
void end_handler(SavedLog &saved, ucontext_t &interrupted);
// What the thread executes meanwhile is ours, not the program's.
void stop_logging(SavedLog &saved);
void go_on_logging(const SavedLog &saved);

// Around a fork of libc's.
void before_fork();
void after_fork();
void in_child();

// The gate has changed: the calling thread's streams end here, or begin at the next place where
// they may. Other threads notice it with their next buffer.
void follow_gate();

// Its id; in a child of vfork the child's, where that may be asked (sandbox.h).
uint32_t own_process();
// There is something for the tool to see to.
void tell_tool();
// Who waits on the word, of any process. Where that may not be called they look again by themselves.
void wake_all(const uint32_t &word);
// Waits a tenth of a second or so for the tool, or another process, to change the word. False if
// nothing is recorded any more: it was stopped, or the tool is gone. `waits` is 0 before the first
// time.
bool wait_for_tool(const uint32_t &word, uint32_t seen, uint32_t &waits);

// "assay: TEXT" on standard error.
void say(const char *text);

} // namespace assay::relocated
