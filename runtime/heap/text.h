// The option text=stderr|FILE: heap info blocks as text where they leave the table, in the manner of
// the source document's prototype; for people, and for scripts that read no profile.
//
// Source: heap-profiler.txt, "Dumping".
#pragma once

#include "runtime/heap/hib_table.h"

namespace assay::heap {

// Writes one line `hib context=N name=value …`; before the first, the memory map.
void print_hib(const HibEntry &entry, bool live);

// Writes `context N pc pc …` for each context since the last time, and lets go of what is buffered.
// Under the lock of flush().
void print_contexts();

// In the child of a fork: it prints its own contexts and map.
void reset_text_in_child();

} // namespace assay::heap
