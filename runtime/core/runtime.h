// The state of the runtime: one struct, constant-initialized, because code of ours runs before any
// constructor; and its life: start, flush, finish.
#pragma once

#include "abi/fields.h"
#include "abi/version.h"
#include "runtime/core/file/module_map.h"
#include "runtime/core/file/profile_file.h"
#include "runtime/core/objects/chunk.h"
#include "runtime/core/objects/side_table.h"
#include "runtime/core/stacks/stack_depot.h"
#include "runtime/core/system/control.h"
#include "runtime/core/system/options.h"
#include "runtime/core/tool_callbacks.h"

#define ASSAY_HOOK(name, result, parameters, meaning)                                              \
  extern "C" __attribute__((visibility("default"))) result name parameters;
#define ASSAY_HOOK_QUIET(name, parameters, meaning)                                                \
  extern "C" __attribute__((visibility("default"), preserve_most)) void name parameters;
#define ASSAY_HOOK_QUIET_RESULT(name, result, parameters, meaning)                                 \
  extern "C" __attribute__((visibility("default"), preserve_most)) result name parameters;
#define ASSAY_HOOK_VARIABLE(name, type, meaning)                                                   \
  extern "C" __attribute__((visibility("default"))) type name;
#define ASSAY_HOOK_TLS(name, type, meaning)                                                        \
  extern "C" __attribute__((visibility("default"),                                                 \
                            tls_model("initial-exec"))) thread_local constinit type name;
#include "abi/hooks.def"

namespace assay {

struct Runtime {
  bool wants_recording = false; // is_recording(), but for children of forks that nobody told of
  bool finished = false;        // the final dump is written
  bool instrumented = true;     // accesses are counted; false where the runtime was only preloaded
  uint64_t tools = 0;           // that run: bits of abi/tools.def
  uint64_t tools_wanted = 0;    // that units were built for
  bool wants_allocations = false; // some tool asks for allocations
  bool wants_objects = false;     // and when its objects end: they are kept, by headers or beside
  bool ignores_allocations =
      false;        // tools run, and none asks for either: nothing stands before malloc
  uint32_t pid = 0; // whose memory this is: differs in a vfork child
  uint64_t start_unix_ns = 0;
  uint64_t forked_us = 0; // in the child of a fork: when it began; else 0
  Options options;
  ChunkMap chunks;
  SideTable side; // of headers=0; else it does not exist
  StackDepot depot;
  ModuleMap modules;
  ProfileFile file;
  ControlPage control;
};

extern constinit Runtime runtime;

// The kernel empties this page in the child of a fork (MADV_WIPEONFORK), also of one by the system
// call itself: such a child records nothing in its parent's name, and is found when it allocates or
// ends.
struct alignas(4096) RecordingPage {
  bool on;
  bool is_adopted; // adopt_unseen_child() was called
};
extern constinit RecordingPage recording_page;

// Are events published?
inline bool is_recording() {
  return recording_page.on;
}
void set_recording(bool on);

// The child of a fork that nobody told of.
inline bool is_unseen_child() {
  return !recording_page.on && runtime.wants_recording;
}
// It begins to record, as other children do. Only the first call does anything.
void adopt_unseen_child();
// Whether this memory is this process's own, as it is not in the child of a vfork. Adopts.
bool owns_memory();

// Begins to record; only the first call does anything. `sites` is the SITES section of the executable, if it was
// instrumented and has one.
void start(char **envp, bool instrumented, const char *sites, uint64_t sites_size);

// The first records of a new file.
void begin_file(bool forked);

// A module whose SITES section this is has come: what the compiler knew of it is written.
void add_instrumented_module(const void *sites, uint64_t size);

// Its last destructor has run.
void end_module(const void *sites, uint64_t size);

// Appends what changed to the profile: called by the helper thread, and by the ends below.
void flush(FlushKind kind);

// Before records that name contexts, where the next flush may be far: should the run be killed or the disk
// be full, readers know them.
void write_new_contexts();

// Blocks flushes while the file is being rewritten.
class FlushesWait {
public:
  FlushesWait();
  ~FlushesWait();
  FlushesWait(const FlushesWait &) = delete;
  FlushesWait &operator=(const FlushesWait &) = delete;
};

// Leaves out what was measured so far; called where flush() may be.
void reset();

// Writes everything and the End record. Only the first call does; a vfork child's does nothing.
void finish(AssayEndReason reason, int status);

// Around exec: as finish, but the process goes on if exec fails.
void prepare_for_exec();
void continue_after_exec(); // errno stays

// Around exec, innermost: what is executed gets the limits of memory that the program set for
// itself (memory_limits.cc).
void give_memory_limits_to_exec();
void take_memory_limits_from_exec();

// Around dlclose: stacks through the module are written while it can be named; the same addresses
// mean something else afterwards.
void before_unload();
void after_unload();

// In the child of a fork, unless it was adopted.
void continue_in_child();

// True in glibc's single-threaded mode: then sums need no atomic operations. The helper thread adds to none.
inline bool single_threaded();

// To a sum that any thread of the program may add to.
template <typename T> void add_to(T &sum, T n) {
  if (single_threaded())
    sum += n;
  else
    __atomic_fetch_add(&sum, n, __ATOMIC_RELAXED);
}

} // namespace assay

// What executables that were built with assay-cc call first and last of all.
extern "C" __attribute__((visibility("default"))) void
__assay_program_start(char **envp, const char *sites, uint64_t sites_size);
extern "C" __attribute__((visibility("default"))) void __assay_program_end(void);

// __assay_module_init of this runtime, also where the name means that of the program's own.
extern "C" __attribute__((visibility("hidden"))) void assay_own_module_init(const void *, uint64_t);

extern "C" char __libc_single_threaded;
inline bool assay::single_threaded() {
  return __libc_single_threaded != 0;
}
