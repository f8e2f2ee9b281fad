// Blocks of 64 bytes that several objects without headers share: in one walk of the live objects, the
// first that is met takes what was counted, so that nothing is counted twice and nothing is lost.
#pragma once

#include <stdint.h>

namespace assay::heap {

bool create_shared_blocks();

// A walk begins: no block has been met. Walks come one at a time.
void begin_shared_blocks();

// Is this the first time in this walk that the block of this counter is met?
bool meet_shared_block(const void *counter);

} // namespace assay::heap
