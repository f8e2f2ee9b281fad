// The distance of a thread's block stands in memory of ours, which the thread's own variable points to: so the helper can send a
// thread to another block without touching a variable of a thread that may have ended. Whether the last owner of a block
// still lives is asked of the kernel, as threads end in many ways, most of them unseen.

#include "runtime/fields/threads.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"

namespace assay::fields {
namespace {

constexpr uint32_t kMaxThreads = 4096; // that run at one time

struct ThreadBlock {
  uint64_t distance; // read by instrumented code
  uint64_t own;      // the distance of its block; 0: it has none
  uint32_t owner;    // thread id
};

struct {
  SpinLock lock;
  uint8_t *first;
  uint32_t count; // of `threads` in use, by this or an earlier thread
  ThreadBlock *threads;
} constinit blocks = {};

bool lives(uint32_t thread) {
  return !sys::failed(sys::call(SYS_tgkill, runtime.pid, thread, 0));
}

// Under the lock. Null if there are too many.
ThreadBlock *choose() {
  for (uint32_t i = 0; i < blocks.count; i++)
    if (!lives(blocks.threads[i].owner))
      return &blocks.threads[i];
  return blocks.count < kMaxThreads ? &blocks.threads[blocks.count] : nullptr;
}

} // namespace

constinit uint64_t first_distance =
    0; // of the main thread, and of those that the runtime does not see

bool create_blocks() {
  blocks.first = (uint8_t *)reserve(kBlockBytes);
  blocks.threads = (ThreadBlock *)reserve(kMaxThreads * sizeof(ThreadBlock));
  return blocks.first && blocks.threads;
}

uint8_t *first_block() {
  return blocks.first;
}

void take_block() {
  Locked locked(blocks.lock);
  ThreadBlock *thread = choose();
  if (thread && !thread->own) {
    auto *memory = (uint8_t *)reserve(kBlockBytes);
    thread->own = memory ? (uint64_t)memory - (uint64_t)blocks.first : 0;
  }
  if (!thread || !thread->own) {
    count_loss(ASSAY_LOSS_one_stripe, 1);
    return;
  }
  if (thread == &blocks.threads[blocks.count])
    __atomic_store_n(&blocks.count, blocks.count + 1, __ATOMIC_RELEASE);
  thread->owner = sys::thread_id();
  thread->distance = thread->own;
  __assay_fields_thread = &thread->distance;
}

void each_block(void (*f)(const uint8_t *block, void *data), void *data) {
  uint32_t count = __atomic_load_n(&blocks.count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; i++)
    f(blocks.first + blocks.threads[i].own, data);
}

void share_first_block() {
  Locked locked(blocks.lock);
  for (uint32_t i = 0; i < blocks.count; i++)
    __atomic_store_n(&blocks.threads[i].distance, 0, __ATOMIC_RELAXED);
}

void reset_blocks_in_child(uint64_t used_bytes) {
  blocks.lock.reset();
  __assay_fields_thread = &first_distance;
  if (!blocks.first)
    return;
  empty_span(blocks.first, used_bytes);
  for (uint32_t i = 0; i < blocks.count; i++) {
    empty_span(blocks.first + blocks.threads[i].own, used_bytes);
    blocks.threads[i].owner = 0;
    blocks.threads[i].distance = 0;
  }
}

} // namespace assay::fields

extern "C" thread_local constinit const uint64_t *__assay_fields_thread =
    &assay::fields::first_distance;
