// Where an object's facts are gathered, so that malloc, pools and mmap say the same of theirs.

#include "runtime/core/objects.h"

#include "runtime/core/runtime.h"
#include "runtime/core/thread.h"
#include "runtime/core/unwind.h"

namespace assay {

namespace {

// Enough for the machinery around an allocation, also where nothing is inlined. With the frame that shows
// that there are more, sixteen are compared (core/stack_memo.h).
constexpr uint32_t kOwnerDepth = 15;

uint32_t context_of(const void *frame, uint32_t type, uint32_t origin, uint64_t depth) {
  const uint64_t at = (uint64_t)frame, end = end_of_stack(at);
  StackMemo *memo = take_memo(beginning_of_stack(frame, end));
  if (memo && is_known(*memo, at, type, origin, end)) {
    uint32_t context = memo->context;
    give_back(*memo);
    return context;
  }
  if (memo)
    begin_memo(*memo, at, type, origin);
  Stack stack;
  unwind(frame, depth, runtime.options.fold_recursion, stack, memo ? &memo->reads : nullptr);
  uint32_t context = runtime.depot.intern(stack, type, origin);
  if (memo) {
    end_memo(*memo, context);
    give_back(*memo);
  }
  return context;
}

} // namespace

uint32_t context_of(const void *frame, uint32_t type, uint32_t origin) {
  return context_of(frame, type, origin, runtime.options.depth);
}

uint32_t owner_context_of(const void *frame, uint32_t type) {
  uint64_t depth = runtime.options.depth;
  return context_of(frame, type, 0, depth < kOwnerDepth ? depth : kOwnerDepth);
}

ChunkHeader timeless_header(uint64_t size, uint32_t context) {
  ChunkHeader header = {};
  header.size = size;
  header.context = context;
  return header;
}

ChunkHeader new_header(uint64_t size, uint32_t context) {
  Moment when = now();
  ChunkHeader header = timeless_header(size, context);
  header.time_us = when.us;
  header.cpu = when.cpu;
  return header;
}

void end_object(void *block, const ChunkHeader &header, const void *frame) {
  if (header.flags & kWithdrawn)
    return;
  uint32_t place = runtime.options.free_stacks && frame ? context_of(frame, 0) : 0;
  publish_free({block, header, now(), place, this_thread.last_block == block});
}

void insert_beside(SideTable &table, const SideObject &object) {
  SideObject unseen;
  if (table.insert(object, &unseen))
    end_object((void *)unseen.block, unseen.header, nullptr);
}

void begin_beside(SideTable &table, void *block, uint64_t size, const void *pool,
                  uint32_t context) {
  ChunkHeader header = new_header(size, context);
  header.flags = kSharedBlocks;
  header.check = chunk_check(block, header);
  insert_beside(table, {block, header, pool});
  publish_allocation({block, header});
  this_thread.last_block = block;
}

} // namespace assay
