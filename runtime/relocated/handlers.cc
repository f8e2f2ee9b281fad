// A handler may interrupt a snippet of moved code, which holds a position that it has not written
// back. So what handlers log goes to streams of their own; where each interrupted its thread is
// known.
//
// A stand-in is two instructions, which say its number. Whose it is never changes. Programs have a
// few handlers; those beyond all stand-ins share the last one, by signal, and change a moment
// before their flags do.

#include "runtime/relocated/handlers.h"

namespace assay::relocated {
namespace {

constexpr int kSignals = 65;
constexpr uint64_t kStandIns = 256, kStandInBytes = 16; // as below
constexpr uint64_t kShared = kStandIns - 1;
Handler handlers[kShared]; // by stand-in, in the order in which they came; null: nobody's yet
Handler shared_handlers[kSignals];

extern "C" [[gnu::visibility("hidden")]] const char assay_stand_ins[];

Handler handler_of(int number, uint64_t stand_in) {
  return __atomic_load_n(stand_in == kShared ? &shared_handlers[number] : &handlers[stand_in],
                         __ATOMIC_ACQUIRE);
}

} // namespace

bool takes_handlers(int number) {
  return ring && ring->log != ASSAY_LOG_nothing && number > 0 && number < kSignals;
}

Handler stand_in_of(int number, Handler handler) {
  uint64_t at = 0;
  for (; at < kShared; at++) {
    Handler whose = nullptr;
    if (__atomic_compare_exchange_n(&handlers[at], &whose, handler, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        whose == handler)
      break;
  }
  if (at == kShared)
    __atomic_store_n(&shared_handlers[number], handler, __ATOMIC_RELEASE);
  return (Handler)(assay_stand_ins + at * kStandInBytes);
}

bool is_stand_in(Handler handler) {
  return (uint64_t)handler - (uint64_t)assay_stand_ins < kStandIns * kStandInBytes;
}

Handler program_handler(int number, Handler handler) {
  return is_stand_in(handler)
             ? handler_of(number, ((uint64_t)handler - (uint64_t)assay_stand_ins) / kStandInBytes)
             : handler;
}

// Called as the kernel calls a handler, with one argument more.
extern "C" [[gnu::visibility("hidden")]] void assay_on_signal(int number, siginfo_t *info,
                                                              void *context, uint64_t stand_in) {
  const Handler handler = handler_of(number, stand_in);
  SavedLog saved;
  begin_handler(saved, *(const ucontext_t *)context);
  handler(number, info, context);
  end_handler(saved, *(ucontext_t *)context);
}

asm(R"(
  .text
  .hidden assay_stand_ins
  .globl assay_stand_ins
  .type assay_stand_ins, @function
  .balign 16
assay_stand_ins:
  .cfi_startproc
  .set assay_stand_in, 0
  .rept 256
  .balign 16
  movl $assay_stand_in, %ecx
  jmp assay_on_signal
  .set assay_stand_in, assay_stand_in + 1
  .endr
  .cfi_endproc
  .size assay_stand_ins, . - assay_stand_ins
)");

} // namespace assay::relocated
