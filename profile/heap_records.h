// What the heap's records mean, for those that put a profile together by hand.
#pragma once

#include "profile/merge.h"

namespace profile {

// The context of the profile that is being put together; made if it is new. Valid until the next call.
HeapContext &heap_context(Assembler &assembler, StackId stack, TypeId type = {},
                          const Origin &origin = {});

// Adds what was counted outside the heap.
void add(Assembler &assembler, const NonHeapBlock &block);

// What one context gained elsewhere; `bridge` as in assay_hib_merge (1 only within one process).
void merge_heap(HeapContext &into, const HeapContext &later, int bridge);

} // namespace profile
