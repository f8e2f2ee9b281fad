// Threads begin here: before a thread runs anything of the program's, the tools are told, on that
// thread. The call of its function is a jump, so that nothing of ours stays on its stack.
//
// Threads made by clone itself are not seen.

#include <pthread.h>
#include <threads.h>

#include "runtime/core/objects/objects.h"
#include "runtime/core/process/fatal_signals.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/shadow/lazy_shadow.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/tool_callbacks.h"

namespace assay {
namespace {

template <typename Result> struct Start {
  Result (*run)(void *);
  void *argument;
};

// What a thread has to run, from its creator to its beginning. Slots are used again.
struct Slot {
  Slot *next;
  void *run; // the function: of pthread_create or of thrd_create
  void *argument;
};

struct {
  SpinLock lock;
  Slot *free_list;
} constinit slots = {};

template <typename Result> Slot *new_slot(Result (*run)(void *), void *argument) {
  ReentrancyGuard busy;
  Slot *slot;
  {
    Locked locked(slots.lock);
    slot = slots.free_list;
    if (slot)
      slots.free_list = slot->next;
  }
  if (!slot)
    slot = (Slot *)arena_allocate(sizeof *slot);
  if (slot)
    *slot = {nullptr, (void *)run, argument};
  return slot;
}

template <typename Result> Start<Result> take(void *given) {
  ReentrancyGuard busy;
  Slot *slot = (Slot *)given;
  Start<Result> start = {(Result (*)(void *))slot->run, slot->argument};
  {
    Locked locked(slots.lock);
    slot->next = slots.free_list;
    slots.free_list = slot;
  }
  if (is_shadow_lazy())
    unblock_faults();
  if (is_recording())
    publish_thread_start();
  return start;
}

template <typename Result> Result begin(void *given) {
  Start<Result> start = take<Result>(given);
  [[clang::musttail]] return start.run(start.argument);
}

template <typename Result, typename Create>
int create_with(Result (*run)(void *), void *argument, Create create) {
  find_real_functions();
  Slot *slot = may_record() || is_shadow_lazy() ? new_slot(run, argument) : nullptr;
  return slot ? create(begin<Result>, slot) : create(run, argument);
}

} // namespace

static void reset_threads_in_child() {
  slots.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_threads_in_child);

} // namespace assay

using namespace assay;

ASSAY_EXPORT int ASSAY_NAME(pthread_create)(pthread_t *thread, const pthread_attr_t *attributes,
                                            void *(*run)(void *), void *argument) {
  return create_with(run, argument, [&](void *(*function)(void *), void *given) {
    return real.pthread_create(thread, attributes, function, given);
  });
}

ASSAY_EXPORT int ASSAY_NAME(thrd_create)(thrd_t *thread, int (*run)(void *), void *argument) {
  return create_with(run, argument, [&](int (*function)(void *), void *given) {
    return real.thrd_create(thread, function, given);
  });
}
