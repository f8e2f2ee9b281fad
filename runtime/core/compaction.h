// Keeps the profile of a long run short.
#pragma once

namespace assay {

// Compacts the file if it has grown beyond the option compact_bytes, and to twice what the last
// compaction left. Under the lock of flush().
void compact_if_large();

} // namespace assay
