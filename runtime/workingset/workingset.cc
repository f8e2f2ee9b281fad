// A snapshot ends on the helper thread when its time is up, or on the thread of the program that makes
// the clock pass: at a mark, at an access.
//
// One pass over the touched shadow asks the lines of the snapshot for new owners, writes the snapshots
// that the shadow can hold no longer, and shifts. A pass that takes more than its share of the time
// makes the following snapshots longer.

#include "runtime/workingset/workingset.h"

#include "abi/sites.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/core/system/losses.h"
#include "runtime/workingset/clock.h"
#include "runtime/workingset/coalesce.h"
#include "runtime/workingset/lines.h"
#include "runtime/workingset/owners.h"
#include "runtime/workingset/records.h"
#include "runtime/workingset/regions.h"

namespace assay::workingset {
namespace {

constexpr uint64_t kFewSnapshots = 32; // joining them only to save bytes would say too little
constexpr uint64_t kMaxShare = 50;     // one part in so many of a snapshot may go into ending it

struct {
  SpinLock lock; // of all below
  bool owners;
  uint64_t tick;  // the first of the running snapshot
  uint64_t ticks; // of each snapshot: a power of two
  uint64_t begin, begin_us, interval;
  uint32_t held; // snapshots that ended and are only in the shadow
  LinesRecord lines;
  OwnersRecord owner_runs;
} constinit state = {};

void begin_first_snapshot() {
  state.tick = state.ticks = 1;
  state.begin = time_now(false);
  state.begin_us = now_us();
  state.interval = first_interval();
}

bool start() {
  if (!map_lines()) {
    count_loss(ASSAY_LOSS_no_shadow, 1);
    return false;
  }
  state.owners = runtime.options.owners && create_owners();
  start_clock();
  begin_first_snapshot();
  return true;
}

void on_begin() {
  runtime.file.append(
      ASSAY_RECORD_WorkingSetMode,
      AssayWorkingSetMode{(uint32_t)line_bytes(), (uint32_t)time_unit(), first_interval()});
}

void ask_for_owners(const Group &group) {
  uint64_t bytes = line_bytes();
  for (uint64_t left = group.now; left; left &= left - 1) {
    uint64_t line = group.number * 64 + (uint64_t)__builtin_ctzll(left);
    OwnedRun run;
    if (take_new_owner(line * bytes, run))
      state.owner_runs.add(run.first * (64 / bytes), run.count * (64 / bytes), run.context);
  }
}

void begin_held() {
  state.lines.begin(runtime.file, state.tick - state.held * state.ticks, state.ticks, state.held);
}

// The snapshots that are held, the oldest first.
void write_held(const Group &group) {
  uint64_t planes[kMaxPlanes];
  for (uint32_t i = 0; i < state.held; i++)
    planes[i] = group.before[state.held - 1 - i];
  state.lines.add(group.number, planes);
}

// Under the lock.
void end_snapshot(uint64_t now, const char *name) {
  uint64_t end_us = now_us();
  bool holds_none = held_snapshots() == 0;
  bool full = !holds_none && state.held == held_snapshots();
  if (full)
    begin_held();
  if (holds_none)
    state.lines.begin(runtime.file, state.tick, state.ticks, 1);
  state.owner_runs.begin(runtime.file, state.tick);
  __atomic_fetch_add(&snapshot_number, 1, __ATOMIC_RELAXED);
  end_lines([&](const Group &group) {
    if (state.owners && group.now)
      ask_for_owners(group);
    if (full)
      write_held(group);
    if (holds_none)
      state.lines.add(group.number, &group.now);
  });
  if (full || holds_none)
    state.lines.end();
  state.owner_runs.end();
  state.held = holds_none ? 0 : full ? 1 : state.held + 1;
  runtime.file.append(
      ASSAY_RECORD_WorkingSetSnapshot,
      AssayWorkingSetSnapshot{state.tick, state.ticks, state.begin, now, state.begin_us, end_us},
      name, name ? length_of(name) : 0);
  state.tick += state.ticks;
  state.begin = now;
  state.begin_us = end_us;
  uint64_t took = now_us() - end_us;
  if (time_unit() <= ASSAY_TIME_CPU && took * kMaxShare > state.interval)
    state.interval *= 2;
}

// Under the lock: what only the shadow knows.
void write_all_held() {
  if (!state.held)
    return;
  begin_held();
  visit_lines(write_held);
  state.lines.end();
  state.held = 0;
}

bool too_many() {
  uint64_t snapshots = (state.tick - 1) / state.ticks;
  if (snapshots < 2 || snapshots % 2)
    return false;
  bool large = runtime.options.join_bytes && runtime.file.bytes() > runtime.options.join_bytes;
  return snapshots >= runtime.options.snapshots || (large && snapshots >= kFewSnapshots);
}

// Joins neighbours where there are too many snapshots. Without the lock.
void coalesce_if_too_many() {
  if (!too_many())
    return;
  FlushesWait flushes;
  Locked locked(state.lock);
  if (!too_many()) // another thread was faster
    return;
  write_all_held();
  state.ticks *= 2;
  state.interval *= 2;
  set_coalesced_ticks(state.ticks);
  runtime.file.replace(coalesce_snapshots); // if it cannot be done, there are more of the old ones
}

uint64_t on_poll() {
  if (time_unit() > ASSAY_TIME_CPU || !is_recording())
    return ~0ULL;
  uint64_t now = time_now(true), due;
  write_new_contexts();
  {
    Locked locked(state.lock);
    due = state.begin + state.interval;
    if (now >= due) {
      end_snapshot(now, nullptr);
      due = now + state.interval;
    }
  }
  coalesce_if_too_many();
  uint64_t wait = due - now;
  return time_unit() == ASSAY_TIME_CPU ? wait / 2 + 500 : wait; // several threads use it up sooner
}

void on_mark(const char *name) {
  if (time_unit() != ASSAY_TIME_MARKS)
    return;
  write_new_contexts();
  {
    Locked locked(state.lock);
    count_mark();
    uint64_t now = time_now(false);
    if (now - state.begin < state.ticks) // joined snapshots have so many marks, new ones, too
      return;
    end_snapshot(now, name);
  }
  coalesce_if_too_many();
}

void on_allocation(const Allocation &a) {
  if (state.owners && !(a.header.flags & kPoolMemory))
    own(a.block, a.header.size, a.header.context);
}

void on_realloc(const Realloc &r) {
  if (state.owners)
    own(r.block, r.header.size, r.header.context);
}

// Lines between the two are owned anew when something is mapped there.
void on_split(const Split &s) {
  if (!state.owners)
    return;
  own(s.block, s.header.size, s.header.context);
  own(s.rest, s.rest_header.size, s.header.context);
}

void on_flush(FlushKind) {
  Locked locked(state.lock);
  if (units.has_fixed_base && lines_are_elsewhere()) {
    count_loss(ASSAY_LOSS_no_shadow, 1);
    units.has_fixed_base = false; // said
  }
  write_all_held();
  write_regions(state.tick);
}

void on_reset() {
  Locked locked(state.lock);
  end_snapshot(time_now(false), nullptr); // readers leave it out, and all before
  write_all_held();
}

void on_end() {
  Locked locked(state.lock);
  if (time_unit() == ASSAY_TIME_ACCESSES)
    take_accesses();
  if (time_unit() == ASSAY_TIME_MARKS)
    count_mark();
  end_snapshot(time_now(false), nullptr);
  write_all_held();
  write_regions(state.tick);
}

void on_thread_start() {
  note_own_stack();
}

void on_fork() {
  state.lock.reset();
  reset_lines_in_child();
  reset_owners_in_child();
  reset_clock_in_child();
  reset_regions_in_child();
  set_coalesced_ticks(1);
  begin_first_snapshot();
  state.held = 0;
  snapshot_number++;
}

} // namespace

constinit uint32_t snapshot_number = 1;
thread_local constinit uint32_t said_where = 0;
constinit UnitMode units = {};

void say_where(const void *frame) {
  said_where = __atomic_load_n(&snapshot_number, __ATOMIC_RELAXED);
  if (!may_record())
    return;
  ReentrancyGuard busy;
  ContextId context = context_of(frame, kNoType);
  if (context != kNoContext)
    runtime.file.append(ASSAY_RECORD_WorkingSetStack,
                        AssayWorkingSetStack{state.tick, thread_number(), (uint32_t)context});
}

void pass_accesses() {
  if (time_unit() != ASSAY_TIME_ACCESSES || !is_recording()) {
    put_off(1 << 30); // nobody asks
    return;
  }
  if (this_thread.busy) { // a signal's handler, while the runtime works
    put_off(kFirstPiece);
    return;
  }
  ReentrancyGuard busy;
  write_new_contexts();
  {
    Locked locked(state.lock);
    uint64_t now = take_accesses();
    if (now >= state.begin + state.interval)
      end_snapshot(now, nullptr);
    give_accesses(state.begin + state.interval - now);
  }
  coalesce_if_too_many();
}

extern const Subscriber subscriber;
constinit const Subscriber subscriber = {
    .name = "workingset",
    .on_unit =
        [](uint32_t mode) { return units.take(mode, ASSAY_LINES_ENCODING, ASSAY_LINES_DYNAMIC); },
    .start = start,
    .on_begin = on_begin,
    .wants_allocations = [] { return state.owners; },
    .on_allocation = on_allocation,
    .on_realloc = on_realloc,
    .on_split = on_split,
    .on_flush = on_flush,
    .on_reset = on_reset,
    .on_mark = on_mark,
    .on_poll = on_poll,
    .on_thread_start = on_thread_start,
    .on_end = on_end,
    .on_fork = on_fork,
};

} // namespace assay::workingset
