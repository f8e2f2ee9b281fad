// The table of tools, from the one list.

#include "runtime/core/events.h"

#define ASSAY_TOOL(name, bit, question)                                                            \
  namespace assay::name {                                                                          \
  extern const Subscriber subscriber;                                                              \
  }
#include "abi/tools.def"

namespace assay {
namespace {

const Subscriber *const kTools[] = {
#define ASSAY_TOOL(name, bit, question) &name::subscriber,
#include "abi/tools.def"
};
constexpr size_t kToolCount = sizeof kTools / sizeof kTools[0];

constinit const Subscriber *running[kToolCount];
constinit size_t running_count;

} // namespace

bool start_tools() {
  for (const Subscriber *tool : kTools)
    if (tool->start())
      running[running_count++] = tool;
  return running_count > 0;
}

#define ASSAY_PUBLISH(handler, ...)                                                                \
  for (size_t i = 0; i < running_count; i++)                                                       \
    running[i]->handler(__VA_ARGS__);

void publish_allocation(const Allocation &event) {
  ASSAY_PUBLISH(on_allocation, event)
}
void publish_realloc(const Realloc &event) {
  ASSAY_PUBLISH(on_realloc, event)
}
void publish_free(const Free &event) {
  ASSAY_PUBLISH(on_free, event)
}
void publish_withdrawal(const Withdrawal &event) {
  ASSAY_PUBLISH(on_withdrawal, event)
}
void publish_snapshot(SnapshotKind kind) {
  ASSAY_PUBLISH(on_snapshot, kind)
}
void publish_reset() {
  ASSAY_PUBLISH(on_reset)
}
void publish_instrumented() {
  ASSAY_PUBLISH(on_instrumented)
}
void publish_thread_start() {
  ASSAY_PUBLISH(on_thread_start)
}
void publish_unload(uint32_t module) {
  ASSAY_PUBLISH(on_unload, module)
}
void publish_fork() {
  ASSAY_PUBLISH(on_fork)
}

} // namespace assay
