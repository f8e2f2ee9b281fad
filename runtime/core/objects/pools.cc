// Objects that a program's own allocator hands out from memory that it took elsewhere. The program
// says what it does (assay/annotate.h); objects get entries in a side table of their own, beside
// that of headerless blocks: the first object of a slab has the slab's address.
//
// A pool is any address that the program chooses; its name gives its objects their origin.

#include "runtime/core/objects/pools.h"
#include "abi/shadow.h"
#include "runtime/core/objects/allocate.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/objects/origins.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

struct {
  SideTable pools; // by the pool's address; the context in a header is the number of its origin
  SideTable objects;
} constinit state = {};

// The pool's origin; kNoOrigin for one that was not registered, or too late to have a name.
OriginId origin_of(const void *pool) {
  SideObject known;
  if (state.pools.find(pool, known))
    return OriginId{(uint32_t)known.header.context};
  count_loss(ASSAY_LOSS_unknown_pool, 1);
  return kNoOrigin;
}

void register_pool(const void *pool, const char *name) {
  if (!state.objects.create() || !state.pools.create()) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return;
  }
  SideObject known = {pool, {}, nullptr}, before;
  OriginId origin = origin_number(ASSAY_ORIGIN_POOL, name ? name : "");
  if (origin == kNoOrigin)
    count_loss(ASSAY_LOSS_too_many_names, 1);
  known.header.context = ContextId{(uint32_t)origin};
  state.pools.insert(known, &before);
}

void end_objects_of(const void *pool, const void *frame) {
  state.objects.for_each([&](const SideObject &object) {
    SideObject taken;
    if (object.pool == pool && state.objects.take(object.block, taken))
      end_object((void *)taken.block, taken.header, frame);
  });
}

} // namespace

void for_each_pool_object(void (*f)(const void *block, const ChunkHeader &header)) {
  state.objects.for_each([&](const SideObject &object) { f(object.block, object.header); });
}

static void reset_pools_in_child() {
  state.pools.reset_in_child();
  state.objects.reset_in_child();
}
ASSAY_RESET_IN_CHILD(reset_pools_in_child);

} // namespace assay

using namespace assay;

void __assay_register_pool(const void *pool, const char *name) {
  if (!may_record() || !pool)
    return;
  ReentrancyGuard busy;
  register_pool(pool, name);
}

void __assay_pool_memory(const void *, const void *block) {
  if (!may_record() || !block)
    return;
  ReentrancyGuard busy;
  become_pool_memory(const_cast<void *>(block));
}

void __assay_pool_allocate(const void *pool, const void *object, uint64_t bytes) {
  TypeId type = take_next_type();
  if (!may_record() || !object || (bytes >> 47) || (uint64_t)object + bytes > ASSAY_HIGH_END ||
      (uint64_t)object >= ASSAY_HIGH_END) // no address of a program
    return;
  ReentrancyGuard busy;
  OriginId origin = origin_of(pool);
  if (origin != kNoOrigin)
    begin_side_object(state.objects, const_cast<void *>(object), bytes, pool,
                      context_of(ASSAY_FRAME, type, origin));
}

void __assay_pool_free(const void *, const void *object) {
  if (!may_record())
    return;
  ReentrancyGuard busy;
  SideObject taken;
  if (state.objects.take(object, taken))
    end_object((void *)taken.block, taken.header, ASSAY_FRAME);
}

void __assay_pool_clear(const void *pool) {
  if (!may_record())
    return;
  ReentrancyGuard busy;
  end_objects_of(pool, ASSAY_FRAME);
}

void __assay_unregister_pool(const void *pool) {
  if (!may_record() || !pool)
    return;
  ReentrancyGuard busy;
  end_objects_of(pool, ASSAY_FRAME);
  SideObject taken;
  state.pools.take(pool, taken);
}
