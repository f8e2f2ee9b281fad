// The life of an object, whoever made it: malloc, a pool, mmap. All of this inside a ReentrancyGuard section,
// while recording.
#pragma once

#include "runtime/core/objects/chunk.h"
#include "runtime/core/objects/side_table.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/thread.h"

namespace assay {

// Is what this thread does now to be recorded? Not inside the runtime.
inline bool may_record() {
  if (__builtin_expect(!is_recording(), 0) && is_unseen_child())
    adopt_unseen_child();
  return is_recording() && !this_thread.busy;
}

// The type that was announced for the allocation that is being made; forgets it.
inline TypeId take_next_type() {
  const TypeId type{__assay_next_type};
  __assay_next_type = 0;
  return type;
}

// The context of the call that `frame` is the frame of.
ContextId context_of(const void *frame, TypeId type, OriginId origin = kNoOrigin);

// Born now, on this cpu; or, where no tool asks for lives, some time.
ChunkHeader new_header(uint64_t size, ContextId context);
ChunkHeader timeless_header(uint64_t size, ContextId context);

// Does it belong to the parent, in the child of a fork? Its context is a number of the parent's. `header` has a time.
inline bool is_inherited(const ChunkHeader &header) {
  return header.time_us < runtime.forked_us;
}

// Of a walk over live objects: is it for the next one? There is none after the process's end, where
// times may be those of another clock, besides.
inline bool is_born_after(const ChunkHeader &header, uint64_t walk_began_us) {
  return header.time_us > walk_began_us && !runtime.finished;
}

// Tells the tools of the end; frame, of the function that frees, may be null.
void end_object(void *block, const ChunkHeader &header, const void *frame);

// An object without a header begins: its entry is made, the tools are told.
void begin_side_object(SideTable &table, void *block, uint64_t size, const void *pool,
                       ContextId context);

// Puts an entry back after a move; what was there unseen has ended.
void insert_side_object(SideTable &table, const SideObject &object);

} // namespace assay
