// Which words of each object are used? Objects come and go by the events of the heap: at a free, or
// at a walk of what is alive, the marks of an object's words are added to the group of its like. A
// word's shadow is clear when an object begins there, so that the next one starts cold.
//
// Source: cache-fragmentation.txt, "Heap/global object access patterns".

#include "runtime/core/objects/objects.h"
#include "abi/sites.h"
#include "runtime/core/process/live_walk.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/tool_callbacks.h"
#include "runtime/objects/compaction.h"
#include "runtime/objects/globals.h"
#include "runtime/objects/groups.h"
#include "runtime/objects/locals.h"
#include "runtime/objects/regions.h"
#include "runtime/objects/sampler.h"
#include "runtime/objects/words.h"

namespace assay::objects {
namespace {

constexpr uint32_t kSets = 8192, kLiveSets = 2048;

struct {
  bool on;     // start() was called, and all is there but perhaps the shadow
  bool mapped; // the shadow is, in the form that units.mode says
  Groups ended;
  Groups live; // of the walk in progress
  uint64_t walk;
  WalkPace pace;
  uint64_t objects; // alive, as far as they are known
} constinit state = {};

bool map_shadow() {
  state.mapped = false;
  __atomic_store_n(&state.mapped, map_words(), __ATOMIC_RELEASE);
  if (!state.mapped)
    count_loss(why_no_words(), 1);
  return state.mapped;
}

bool start() {
  if (runtime.instrumented && !map_shadow())
    return false;
  if (!state.ended.create(kSets) || !state.live.create(kLiveSets) || !create_regions()) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return false;
  }
  start_sampler();
  state.on = true;
  return true;
}

void on_begin() {
  runtime.file.append(
      ASSAY_RECORD_ObjectsMode,
      AssayObjectsMode{units.mode, (uint32_t)sample_unit(), first_sample_interval()});
}

// Where the units of a program are not read before it starts, or a library brings the first, the
// form is known only now.
bool on_unit(uint32_t mode) {
  const uint32_t before = units.mode;
  bool agrees = units.take(mode, ASSAY_WORDS_ENCODING, ASSAY_WORDS_DYNAMIC);
  if (state.mapped && (before ^ units.mode) & ASSAY_WORDS_ENCODING)
    map_shadow();
  return agrees;
}

void on_instrumented() {
  if (state.on && !state.mapped)
    map_shadow();
}

bool is_measured(const void *block, uint64_t size) {
  return state.mapped && have_words((uint64_t)block, (uint64_t)block + size);
}

void on_allocation(const Allocation &a) {
  const uint64_t size = a.header.size;
  if (!is_measured(a.block, size)) {
    if (state.mapped)
      count_loss(ASSAY_LOSS_odd_address, 1);
    return;
  }
  clear_words(a.block, size);
  note_region((uint64_t)a.block, (uint64_t)a.block + size);
  add_to(state.objects, (uint64_t)1);
}

// What an object keeps, it has used as before; what it gains is cold; what it loses is forgotten.
void on_realloc(const Realloc &r) {
  if (!is_measured(r.block, r.header.size) || !is_measured(r.old_block, r.old_size))
    return;
  const uint64_t size = r.header.size;
  if (r.moved)
    move_words(r.old_block, r.old_size, r.block, size);
  else if (size < r.old_size)
    clear_words((char *)r.block + size, r.old_size - size);
  if (size > r.old_size)
    clear_words((char *)r.block + r.old_size, size - r.old_size);
  note_region((uint64_t)r.block, (uint64_t)r.block + size);
}

void on_split(const Split &s) {
  if (!is_measured(s.block, s.old_size))
    return;
  const uint64_t hole = (uint64_t)s.block + s.header.size;
  clear_words((void *)hole, (uint64_t)s.rest - hole);
  add_to(state.objects, (uint64_t)1);
}

void on_free(const Free &f) {
  if (!is_measured(f.block, f.header.size))
    return;
  state.ended.add(ASSAY_OBJECT_HEAP, f.header.context, f.context, f.block, f.header.size, true, 0);
  add_to(state.objects, (uint64_t)0 - 1);
}

void walk_one(const void *block, const ChunkHeader &h) {
  if (is_inherited(h) || h.flags & kPoolMemory || is_born_after(h, state.pace.began_us()) ||
      !is_measured(block, h.size))
    return;
  state.live.add(ASSAY_OBJECT_HEAP, h.context, kNoContext, block, h.size, false, state.walk);
}

void walk_live() {
  state.walk++;
  state.pace.begin();
  for_each_live(walk_one);
  state.live.write_all(state.walk);
  write_globals(state.walk);
  runtime.file.append(ASSAY_RECORD_ObjectWalk, AssayObjectWalk{state.walk, state.pace.began_us(),
                                                               samples_taken(), sample_interval()});
  state.pace.end();
}

void on_flush(FlushKind kind) {
  if (units.has_fixed_base && words_are_elsewhere()) {
    count_loss(ASSAY_LOSS_no_words, 1);
    units.has_fixed_base = false; // said
  }
  state.ended.write_all(0);
  if (kind == FlushKind::kFull || state.pace.is_due(state.objects))
    walk_live();
}

void on_reset() {
  state.ended.clear();
  clear_globals();
  for_each_live([](const void *block, const ChunkHeader &h) {
    if (is_measured(block, h.size))
      clear_words(block, h.size);
  });
}

void on_fork() {
  reset_words_in_child();
  state.ended.reset_in_child();
  state.live.reset_in_child();
  reset_sampler_in_child();
  state.walk = state.objects = 0;
  state.pace.reset_in_child();
}

} // namespace

constinit UnitMode units = {};

void begin_local(const void *start, uint64_t bytes) {
  if (!state.on || !is_measured(start, bytes))
    return;
  clear_words(start, bytes);
  note_region((uint64_t)start, (uint64_t)start + bytes);
}

void end_local(const void *start, uint64_t bytes, TypeId type, const void *frame) {
  if (!state.on || !may_record() || !is_measured(start, bytes))
    return;
  ReentrancyGuard busy;
  if (ContextId context = context_of(frame, type); context != kNoContext)
    state.ended.add(ASSAY_OBJECT_STACK, context, kNoContext, start, bytes, true, 0);
}

extern const Subscriber subscriber;
constinit const Subscriber subscriber = {
    .name = "objects",
    .on_unit = on_unit,
    .start = start,
    .on_begin = on_begin,
    .wants_allocations = [] { return true; },
    .wants_objects = [] { return true; },
    .on_allocation = on_allocation,
    .on_realloc = on_realloc,
    .on_split = on_split,
    .on_free = on_free,
    .on_flush = on_flush,
    .on_reset = on_reset,
    .on_mark = [](const char *) { sample_at_mark(); },
    .on_poll = poll_sampler,
    .on_instrumented = on_instrumented,
    .on_module = [](const ModuleSites &) { note_globals(); },
    .on_unload = end_globals,
    .on_fork = on_fork,
    .compactor = &compactor,
};

} // namespace assay::objects
