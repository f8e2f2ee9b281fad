// The table of tools, from the one list.
//
// abi/tools.def is read twice: for the names of the subscribers, and for the table. A tool is tried
// once, and may start late; one that does is told of the beginning at once. The list of running
// tools only grows, and its length is stored after the entry, so that who publishes needs no lock.
//
// In the child of a fork, blocks of the parent name the parent's contexts: nothing that becomes of
// them is published. If no running tool wants allocations or objects, the runtime ignores
// allocations altogether.

#include "runtime/core/tool_callbacks.h"

#include "runtime/core/objects/objects.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/real_functions.h"

#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  namespace assay::name {                                                                          \
  extern const Subscriber subscriber;                                                              \
  }
#include "abi/tools.def"

namespace assay {
namespace {

struct Tool {
  uint64_t bit;
  const Subscriber *subscriber;
};
constexpr Tool kTools[] = {
#define ASSAY_TOOL(name, bit, is_default, question) {1ULL << bit, &name::subscriber},
#include "abi/tools.def"
};
constexpr size_t kToolCount = sizeof kTools / sizeof kTools[0];

constinit const Subscriber *running[kToolCount];
constinit size_t running_count;
constinit uint64_t tried; // tools

} // namespace

uint64_t start_tools(uint64_t tools) {
  static constinit uint64_t on = 0;
  for (const Tool &tool : kTools) {
    if (!(tools & ~tried & tool.bit))
      continue;
    tried |= tool.bit;
    if (!tool.subscriber->start())
      continue;
    on |= tool.bit;
    running[running_count] = tool.subscriber;
    __atomic_store_n(&running_count, running_count + 1, __ATOMIC_RELEASE);
    if (is_recording()) // a late one: the file has begun
      tool.subscriber->on_begin();
    runtime.wants_allocations |= tool.subscriber->wants_allocations();
    runtime.wants_objects |= tool.subscriber->wants_objects();
  }
  runtime.ignores_allocations =
      on && real.malloc && real.free && !runtime.wants_allocations && !runtime.wants_objects;
  return on;
}

const Subscriber *running_tool(size_t number) {
  return number < running_count ? running[number] : nullptr;
}

bool take_unit(uint32_t bit, uint32_t mode) {
  for (const Tool &tool : kTools)
    if (tool.bit == 1ULL << bit)
      return tool.subscriber->on_unit(mode);
  return true; // of a newer compiler
}

#define ASSAY_PUBLISH(handler, ...)                                                                \
  for (size_t i = 0; i < running_count; i++)                                                       \
    running[i]->handler(__VA_ARGS__);

void publish_begin() {
  ASSAY_PUBLISH(on_begin)
}
void publish_allocation(const Allocation &event) {
  ASSAY_PUBLISH(on_allocation, event)
}
void publish_realloc(const Realloc &event) {
  if (!is_inherited(event.header))
    ASSAY_PUBLISH(on_realloc, event)
}
void publish_split(const Split &event) {
  if (!is_inherited(event.header))
    ASSAY_PUBLISH(on_split, event)
}
void publish_free(const Free &event) {
  if (!is_inherited(event.header))
    ASSAY_PUBLISH(on_free, event)
}
void publish_pool_memory(const PoolMemory &event) {
  if (!is_inherited(event.header))
    ASSAY_PUBLISH(on_pool_memory, event)
}
void publish_flush(FlushKind kind) {
  ASSAY_PUBLISH(on_flush, kind)
}
void publish_reset() {
  ASSAY_PUBLISH(on_reset)
}
void publish_mark(const char *name){ASSAY_PUBLISH(on_mark, name)} uint64_t publish_poll() {
  uint64_t least = ~0ULL;
  for (size_t i = 0; i < running_count; i++)
    if (uint64_t wait = running[i]->on_poll(); wait < least)
      least = wait;
  return least;
}
void publish_end() {
  ASSAY_PUBLISH(on_end)
}
void publish_instrumented() {
  ASSAY_PUBLISH(on_instrumented)
}
void publish_thread_start() {
  ASSAY_PUBLISH(on_thread_start)
}
void publish_module(const ModuleSites &event) {
  ASSAY_PUBLISH(on_module, event)
}
void publish_module_end(const ModuleSites &event) {
  ASSAY_PUBLISH(on_module_end, event)
}
void publish_unload(ModuleId module) {
  ASSAY_PUBLISH(on_unload, module)
}
void publish_fork() {
  ASSAY_PUBLISH(on_fork)
}

} // namespace assay
