// Where an object's facts are gathered, so that malloc, pools and mmap say the same of theirs.

#include "runtime/core/objects/objects.h"

#include "runtime/core/runtime.h"
#include "runtime/core/stacks/taken_chain.h"
#include "runtime/core/system/thread.h"

namespace assay {

ContextId context_of(const void *frame, TypeId type, OriginId origin) {
  TakenChain chain;
  chain->update(frame);
  return runtime.depot.intern(*chain, type, origin);
}

ChunkHeader timeless_header(uint64_t size, ContextId context) {
  ChunkHeader header = {};
  header.size = size;
  header.context = context;
  return header;
}

ChunkHeader new_header(uint64_t size, ContextId context) {
  Moment when = now();
  ChunkHeader header = timeless_header(size, context);
  header.time_us = when.us;
  header.cpu = when.cpu;
  return header;
}

void end_object(void *block, const ChunkHeader &header, const void *frame) {
  if (header.flags & kPoolMemory)
    return;
  ContextId place = runtime.options.free_stacks && frame ? context_of(frame, kNoType) : kNoContext;
  publish_free({block, header, place, this_thread.last_block == block});
}

void insert_side_object(SideTable &table, const SideObject &object) {
  SideObject unseen;
  if (table.insert(object, &unseen))
    end_object((void *)unseen.block, unseen.header, nullptr);
}

void begin_side_object(SideTable &table, void *block, uint64_t size, const void *pool,
                       ContextId context) {
  ChunkHeader header = new_header(size, context);
  header.flags = kSharedBlocks;
  header.check = chunk_check(block, header);
  insert_side_object(table, {block, header, pool});
  publish_allocation({block, header});
  this_thread.last_block = block;
}

} // namespace assay
