// The working set: which lines were touched in each period of the run, whose they are, and where the
// threads were.
#pragma once

#include <stdint.h>

#include "runtime/core/system/thread.h"

namespace assay::workingset {

// Of the snapshot that is being gathered; from 1 on, never the same again in one process.
extern constinit uint32_t snapshot_number;

// The snapshot in which this thread recorded its call stack last.
extern thread_local constinit uint32_t said_where __attribute__((tls_model("initial-exec")));

// Has this thread not yet said where it is, in this snapshot? It does when it touches a new line.
inline bool is_silent() {
  return said_where != __atomic_load_n(&snapshot_number, __ATOMIC_RELAXED);
}
void say_where(const void *frame); // frame: of the hook

// This thread has used up its piece of accesses.
void pass_accesses();

} // namespace assay::workingset
