// Events that the program counts by assay_event.
#pragma once

namespace assay {

// Writes what was counted since the last time. Under the lock of flush().
void write_events();

// In the child of a fork, and at a reset.
void forget_events();

} // namespace assay
