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
constexpr uint64_t kNegative = 1ULL << 63;

// Of the main thread, and of those that the runtime does not see.
constinit ThreadBlock main_thread = {};

struct {
  SpinLock lock;
  uint8_t *first;
  uint8_t *sampling;
  bool forbidden; // windows
  uint32_t count; // of `threads` in use, by this or an earlier thread
  ThreadBlock *threads;
} constinit blocks = {};

// Under the lock. Null if there are too many.
ThreadBlock *choose() {
  for (uint32_t i = 0; i < blocks.count; i++)
    if (!sys::thread_lives(runtime.pid, blocks.threads[i].owner))
      return &blocks.threads[i];
  return blocks.count < kMaxThreads ? &blocks.threads[blocks.count] : nullptr;
}

uint64_t sampling_distance() {
  return (uint64_t)blocks.sampling - (uint64_t)blocks.first;
}

// Under the lock.
void begin_window(ThreadBlock &thread) {
  if (blocks.forbidden || !blocks.sampling)
    return;
  if (!thread.window)
    thread.window = (Window *)arena_allocate(sizeof(Window));
  if (thread.window)
    __atomic_store_n(&thread.distance, sampling_distance(), __ATOMIC_RELEASE);
}

template <typename F> void each_thread(F f) {
  f(main_thread);
  for (uint32_t i = 0; i < blocks.count; i++)
    f(blocks.threads[i]);
}

} // namespace

bool create_blocks() {
  if (blocks.first)
    return true;
  blocks.threads = (ThreadBlock *)reserve(kMaxThreads * sizeof(ThreadBlock));
  blocks.sampling = (uint8_t *)reserve(kBlockBytes);
  if (blocks.threads && blocks.sampling)
    blocks.first = (uint8_t *)reserve(kBlockBytes);
  return blocks.first != nullptr;
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
  thread->in_hook = 0;
  thread->distance = thread->own;
  begin_window(*thread);
  __assay_fields_thread = &thread->distance;
}

ThreadBlock &this_block() {
  return *(ThreadBlock *)__assay_fields_thread;
}

void each_block(void (*f)(const uint8_t *block, void *data), void *data) {
  uint32_t count = __atomic_load_n(&blocks.count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; i++)
    f(blocks.first + blocks.threads[i].own, data);
}

void extend_sampling_block(uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end; at += sizeof(uint64_t))
    *(uint64_t *)(blocks.sampling + at) = kNegative;
}

bool find_in_sampling_block(const uint64_t *counter, uint64_t &offset) {
  offset = (uint64_t)counter - (uint64_t)blocks.sampling;
  return blocks.sampling && offset < kBlockBytes;
}

bool is_sampling(const ThreadBlock &thread) {
  return blocks.sampling &&
         __atomic_load_n(&thread.distance, __ATOMIC_ACQUIRE) == sampling_distance();
}

void begin_windows() {
  Locked locked(blocks.lock);
  each_thread([](ThreadBlock &thread) { begin_window(thread); });
}

void end_window(ThreadBlock &thread) {
  __atomic_store_n(&thread.distance, thread.own, __ATOMIC_RELEASE);
}

void forbid_windows() {
  Locked locked(blocks.lock);
  blocks.forbidden = true;
  each_thread(end_window);
}

void share_first_block() {
  Locked locked(blocks.lock);
  blocks.forbidden = true;
  each_thread([](ThreadBlock &thread) { thread.own = thread.distance = 0; });
}

void reset_blocks_in_child(uint64_t used_bytes) {
  blocks.lock.reset();
  if (!blocks.first)
    return;
  empty_span(blocks.first, used_bytes);
  for (uint32_t i = 0; i < blocks.count; i++)
    empty_span(blocks.first + blocks.threads[i].own, used_bytes);
  each_thread([](ThreadBlock &thread) {
    thread.owner = thread.in_hook = 0;
    thread.distance = 0;
    if (thread.window)
      __builtin_memset(thread.window, 0, sizeof *thread.window);
  });
  __assay_fields_thread = &main_thread.distance;
}

} // namespace assay::fields

extern "C" thread_local constinit const uint64_t *__assay_fields_thread =
    &assay::fields::main_thread.distance;
