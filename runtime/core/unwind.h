// Call stacks: by frame pointers where code keeps them, by call frame information elsewhere.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay {

constexpr size_t kMaxDepth = 256;

struct Stack {
  uint32_t depth = 0;
  bool cut = false;  // outer frames are missing because of the limit
  uint64_t hash = 0; // of the pcs
  uint64_t pcs[kMaxDepth];
};

// Return addresses from the frame (of the interposed function) outwards; innermost first, at most
// limit; of pcs that come again, in a recursion, only the innermost if folded. Reads only the stack that the thread is running on. Inside a Busy section.
void unwind(const void *frame, size_t limit, bool folded, Stack &out);

// After a module was unloaded: what was learnt of its code is forgotten.
void forget_frame_rules();

} // namespace assay
