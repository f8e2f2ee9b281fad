// Events that the program counts by assay_event.
#pragma once

namespace assay {

// Writes what was counted since the last time. Under the lock of flush().
void write_events();

// At a reset: leaves out the events that were not written yet.
void drop_events();

} // namespace assay
