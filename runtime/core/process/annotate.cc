// What the program says of itself, other than pools: where it is (marks), what happened (events), and
// that it wants a profile now or a new beginning.
//
// Events are counted by name and call stack in a small table; what a full table holds is written, and
// readers add up.

#include "runtime/core/process/annotate.h"

#include "runtime/core/objects/allocate.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/names.h"
#include "runtime/core/system/own_stack.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

struct Event {
  uint32_t name; // its number
  ContextId context;
  uint64_t count, weight;
};

constexpr size_t kEvents = 1024;

struct {
  SpinLock lock;
  Names<1024> names;
  Event events[kEvents];
  size_t used;
} constinit state = {};

// Under the lock.
void write_out_events() {
  for (size_t i = 0; i < state.used; i++) {
    const Event &e = state.events[i];
    runtime.file.append(ASSAY_RECORD_Event, AssayEvent{(uint32_t)e.context, e.count, e.weight},
                        state.names.text(e.name), state.names.size(e.name));
  }
  state.used = 0;
}

void count_event(uint32_t name, ContextId context, uint64_t weight) {
  Locked locked(state.lock);
  for (size_t i = 0; i < state.used; i++) {
    Event &e = state.events[i];
    if (e.name == name && e.context == context) {
      e.count++;
      e.weight += weight;
      return;
    }
  }
  if (state.used == kEvents)
    write_out_events();
  state.events[state.used++] = {name, context, 1, weight};
}

} // namespace

void write_events() {
  Locked locked(state.lock);
  write_out_events();
}

void drop_events() {
  Locked locked(state.lock);
  state.used = 0;
}

static void reset_events_in_child() {
  state.lock.reset();
  state.names.reset_in_child();
  state.used = 0;
}
ASSAY_RESET_IN_CHILD(reset_events_in_child);

} // namespace assay

using namespace assay;

void __assay_mark(const char *name) {
  if (!may_record() || !name)
    return;
  ReentrancyGuard busy;
  runtime.file.append(ASSAY_RECORD_Mark, AssayMark{now_us()}, name, length_of(name));
  publish_mark(name);
}

void __assay_event(const char *name, uint64_t weight) {
  if (!may_record() || !name)
    return;
  ReentrancyGuard busy;
  uint32_t number = state.names.number_of(0, name);
  if (!number)
    count_loss(ASSAY_LOSS_too_many_names, 1);
  else
    count_event(number, context_of(ASSAY_FRAME, kNoType), weight);
}

void __assay_dump() {
  if (!may_record())
    return;
  ReentrancyGuard busy;
  on_own_stack([] { flush(FlushKind::kFull); });
}

void __assay_reset() {
  if (!may_record())
    return;
  ReentrancyGuard busy;
  on_own_stack([] { reset(); });
}
