// The clock of the snapshots, as the option `time` chose it.
#pragma once

#include <stdint.h>

#include "abi/lines.h"

namespace assay::workingset {

// Reads the options time and interval. A word that is no clock is said, and the wall clock taken.
void start_clock();

AssayTimeUnit time_unit();

// Length of a snapshot at first, in the unit.
uint64_t first_interval();

// Now, in the unit. The helper thread's own cpu time is left out; on_helper: it is the one that asks.
uint64_t time_now(bool on_helper);

// Accesses of all threads, as far as they have been counted. Each thread counts down a piece of its own:
// take_accesses() adds what is used of this thread's, and gives it the next, of which `left` are missing
// to the end of the snapshot.
uint64_t take_accesses();
void give_accesses(uint64_t left);
constexpr uint64_t kFirstPiece = 256; // where there are several threads

// This thread goes on for so many before it asks again.
void put_off(uint64_t accesses);

// A mark is one tick of its clock.
void count_mark();

void reset_clock_in_child(); // in the child of a fork

} // namespace assay::workingset
