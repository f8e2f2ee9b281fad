// The first instruction of a static executable. Its C library allocates, and calls what the program
// has in the library's place (malloc, getenv, strlen), before anything of the program begins:
// instrumented, they count in a shadow that is not there yet. So the executable begins here, and
// what is touched of a shadow until the runtime starts is mapped by a handler of SIGSEGV.
//
// There is no thread pointer yet, and a position-independent executable has not relocated itself:
// nothing here needs either.

#include "runtime/core/process/start_static.h"

#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/system/kernel_signal.h"

namespace assay {
namespace {

constinit KernelAction action_before = {};
constinit bool maps_early = false;

void end_early() {
  maps_early = false;
  set_kernel_action(SIGSEGV, &action_before, nullptr);
}

void on_early_fault(int, siginfo_t *info, void *) {
  const bool is_fault = info->si_code > 0;
  if (!is_fault || !map_before_start((uint64_t)info->si_addr))
    end_early(); // a fault happens again, and is the program's own
}

} // namespace

void stop_mapping_early() {
  if (maps_early)
    end_early();
}

} // namespace assay

using namespace assay;

extern "C" {

__attribute__((visibility("hidden"), used)) void assay_map_early() {
  const KernelAction action = kernel_action(on_early_fault, 0);
  maps_early = !sys::failed(set_kernel_action(SIGSEGV, &action, &action_before));
}

// Where a program that begins otherwise (-nostartfiles) has none, nothing comes here.
__attribute__((weak)) void _start();

// rdx and the stack are the kernel's, for _start.
__attribute__((naked, used, visibility("hidden"))) void __assay_static_start() {
  asm volatile("push %rdx\n\t"
               "call assay_map_early\n\t"
               "pop %rdx\n\t"
               "jmp _start");
}
}
