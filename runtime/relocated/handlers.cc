// A handler may interrupt a snippet of moved code, which holds a position that it has not written back. So what handlers log goes to
// streams of their own; where each interrupted its thread is known.

#include "runtime/relocated/handlers.h"

namespace assay::relocated {
namespace {

constexpr int kSignals = 65;
Handler handlers[kSignals];

} // namespace

bool takes_handlers(int number) {
  return ring && ring->log != ASSAY_LOG_nothing && number > 0 && number < kSignals;
}

Handler handler_of(int number) {
  return __atomic_load_n(&handlers[number], __ATOMIC_ACQUIRE);
}

void set_handler(int number, Handler handler) {
  __atomic_store_n(&handlers[number], handler, __ATOMIC_RELEASE);
}

void on_signal(int number, siginfo_t *info, void *context) {
  const Handler handler = handler_of(number);
  SavedLog saved;
  begin_handler(saved, *(const ucontext_t *)context);
  handler(number, info, context);
  end_handler(saved, *(ucontext_t *)context);
}

} // namespace assay::relocated
