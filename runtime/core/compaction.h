// Keeps the profile of a long run short.
#pragma once

namespace assay {

// Compacts the file if it has grown beyond the option compact_bytes, and to twice what the last
// compaction left. Under the lock of flush().
void compact_if_large();

// In the child of a fork, whose file begins anew.
void forget_compaction();

} // namespace assay
