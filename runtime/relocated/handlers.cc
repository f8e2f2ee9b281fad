// A handler may interrupt a snippet of moved code, which holds a position that it has not written back. So what handlers log goes to
// streams of their own; where each interrupted its thread is known.
//
// A stand-in is two instructions, which say its number. Whose it is never changes. Programs have a few handlers; those beyond all stand-ins share
// the last one, by signal, and change a moment before their flags do.

#include "runtime/relocated/handlers.h"

#define ASSAY_STAND_INS 256
#define ASSAY_STAND_IN_BYTES 16

namespace assay::relocated {
namespace {

constexpr int kSignals = 65;
constexpr uint64_t kShared = ASSAY_STAND_INS - 1;
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
  return (Handler)(assay_stand_ins + at * ASSAY_STAND_IN_BYTES);
}

bool is_stand_in(Handler handler) {
  return (uint64_t)handler - (uint64_t)assay_stand_ins < ASSAY_STAND_INS * ASSAY_STAND_IN_BYTES;
}

Handler program_handler(int number, Handler handler) {
  return is_stand_in(handler) ? handler_of(number, ((uint64_t)handler - (uint64_t)assay_stand_ins) /
                                                       ASSAY_STAND_IN_BYTES)
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

#define ASSAY_TEXT_OF(value) #value
#define ASSAY_TEXT(value) ASSAY_TEXT_OF(value)
asm(".text\n.hidden assay_stand_ins\n.globl assay_stand_ins\n.type assay_stand_ins, @function\n"
    ".balign " ASSAY_TEXT(
        ASSAY_STAND_IN_BYTES) "\nassay_stand_ins:\n .cfi_startproc\n"
                              " .set assay_stand_in, 0\n .rept " ASSAY_TEXT(
                                  ASSAY_STAND_INS) "\n"
                                                   " .balign " ASSAY_TEXT(
                                                       ASSAY_STAND_IN_BYTES) "\n movl "
                                                                             "$assay_stand_in, "
                                                                             "%ecx\n jmp "
                                                                             "assay_on_signal\n"
                                                                             " .set "
                                                                             "assay_stand_in, "
                                                                             "assay_stand_in + 1\n "
                                                                             ".endr\n"
                                                                             " .cfi_endproc\n "
                                                                             ".size "
                                                                             "assay_stand_ins, . - "
                                                                             "assay_stand_ins\n");

} // namespace assay::relocated
