// Programs that have the kernel forbid system calls (seccomp). A call that is not allowed may end
// the program, so from then on the runtime makes none between the program's instructions: time is
// what the tool writes into the shared memory, the tool looks for news by itself, and who waits for
// it spins.
#pragma once

#include "runtime/relocated/relocated.h"

namespace assay::relocated {

// Calls that the runtime makes may be forbidden. Set before they are, and never taken back.
bool is_sandboxed();
// The program is about to make this system call. If it asks for a filter that allows all that the
// runtime calls, nothing changes.
void before_sandbox(uint64_t number, uint64_t first, uint64_t second, uint64_t third);
// At the begin of a program: it may have been executed under a filter that the tool is not under.
// Then returns the process's id, else 0.
uint32_t begin_under_filters();
// The id of the calling thread, if that is known without a system call; else 0. A process that was
// made by libc's fork has that of its first thread.
uint32_t thread_id_without_call();

} // namespace assay::relocated
