// A thread's distance never changes while it runs, so code may read it once and count for hours.
// Whether the last owner of a block still lives is asked of the kernel, as threads end in many
// ways, most of them unseen.

#include "runtime/fields/threads.h"

#include "abi/fields.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"
#include "runtime/fields/asking.h"

namespace assay::fields {
namespace {

constexpr uint32_t kMaxThreads = 4096; // that run at one time
constexpr uint64_t kNowhereBytes = ASSAY_MAX_FIELD_COUNTERS * sizeof(uint64_t);

// Of the main thread, and of those that the runtime does not see.
constinit ThreadBlock main_thread = {};

thread_local constinit ThreadBlock *this_thread_block __attribute__((tls_model("initial-exec"))) =
    &main_thread;

struct {
  SpinLock lock;
  uint8_t *first;
  uint32_t count; // of `threads` in use, by this or an earlier thread
  ThreadBlock *threads;
} constinit blocks = {};

// A round's number; and of the threads, how many have joined and how many of these have left.
struct {
  uint32_t number;
  bool is_on, is_forbidden;
  uint32_t joined, left;
  uint64_t weight;
} constinit rounds = {};

// Under the lock. Null if there are too many.
ThreadBlock *choose() {
  for (uint32_t i = 0; i < blocks.count; i++)
    if (!sys::thread_lives(runtime.pid, blocks.threads[i].owner))
      return &blocks.threads[i];
  return blocks.count < kMaxThreads ? &blocks.threads[blocks.count] : nullptr;
}

uint8_t *new_block() {
  return (uint8_t *)reserve(kBlockBytes + kNowhereBytes);
}

} // namespace

bool create_blocks() {
  if (blocks.first)
    return true;
  blocks.threads = (ThreadBlock *)reserve(kMaxThreads * sizeof(ThreadBlock));
  if (blocks.threads)
    blocks.first = new_block();
  return blocks.first != nullptr;
}

uint8_t *first_block() {
  return blocks.first;
}

uint8_t *nowhere() {
  return blocks.first + kBlockBytes;
}

void take_block() {
  Locked locked(blocks.lock);
  ThreadBlock *thread = choose();
  if (thread && !thread->own) {
    uint8_t *memory = new_block();
    thread->own = memory ? (uint64_t)memory - (uint64_t)blocks.first : 0;
  }
  if (!thread || !thread->own) {
    count_loss(ASSAY_LOSS_one_stripe, 1);
    return;
  }
  if (thread == &blocks.threads[blocks.count])
    __atomic_store_n(&blocks.count, blocks.count + 1, __ATOMIC_RELEASE);
  thread->owner = sys::thread_id();
  thread->in_hook = 0;
  thread->joined = thread->left = 0;
  this_thread_block = thread;
  __assay_fields_distance = thread->own;
}

ThreadBlock &this_block() {
  return *this_thread_block;
}

void each_block(void (*f)(const uint8_t *block, void *data), void *data) {
  uint32_t count = __atomic_load_n(&blocks.count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; i++)
    f(blocks.first + blocks.threads[i].own, data);
}

void begin_round(uint64_t weight) {
  if (rounds.is_forbidden)
    return;
  __atomic_store_n(&rounds.weight, weight, __ATOMIC_RELAXED);
  rounds.joined = rounds.left = 0;
  const uint32_t number = rounds.number + 1;
  __atomic_store_n(&rounds.number, number ? number : 1, __ATOMIC_RELAXED);
  __atomic_store_n(&rounds.is_on, true, __ATOMIC_RELEASE);
  let_code_report(true);
}

void end_round() {
  if (__atomic_exchange_n(&rounds.is_on, false, __ATOMIC_ACQ_REL))
    let_code_report(false);
}

bool is_in_round() {
  return __atomic_load_n(&rounds.is_on, __ATOMIC_ACQUIRE);
}

uint32_t number_of_round() {
  return __atomic_load_n(&rounds.number, __ATOMIC_RELAXED);
}

uint64_t weight_of_round() {
  return __atomic_load_n(&rounds.weight, __ATOMIC_RELAXED);
}

bool joins_round(ThreadBlock &thread) {
  if (!is_in_round() || thread.left == rounds.number)
    return false;
  if (!thread.window)
    thread.window = (Window *)arena_allocate(sizeof(Window));
  if (thread.window && thread.joined != rounds.number) {
    thread.joined = rounds.number;
    __atomic_fetch_add(&rounds.joined, 1, __ATOMIC_RELAXED);
  }
  return thread.window != nullptr;
}

void leave_round(ThreadBlock &thread) {
  thread.left = rounds.number;
  if (__atomic_add_fetch(&rounds.left, 1, __ATOMIC_RELAXED) >=
      __atomic_load_n(&rounds.joined, __ATOMIC_RELAXED))
    end_round();
}

void forbid_rounds() {
  rounds.is_forbidden = true;
  end_round();
}

void reset_blocks_in_child(uint64_t used_bytes) {
  blocks.lock.reset();
  rounds.is_on = false;
  if (!blocks.first)
    return;
  empty_span(blocks.first, used_bytes);
  for (uint32_t i = 0; i < blocks.count; i++) {
    empty_span(blocks.first + blocks.threads[i].own, used_bytes);
    blocks.threads[i].owner = 0;
  }
  ThreadBlock &mine = this_block();
  if (mine.window)
    __builtin_memset(mine.window, 0, sizeof *mine.window);
  main_thread = {0, 0, 0, 0, 0, mine.window};
  if (&mine != &main_thread)
    mine.window = nullptr;
  this_thread_block = &main_thread;
  __assay_fields_distance = 0;
}

} // namespace assay::fields

extern "C" thread_local constinit uint64_t __assay_fields_distance = 0;
