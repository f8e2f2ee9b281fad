// A SIGSEGV handler, in this mode only: 64 KiB of shadow, which cover 512 KiB of program, at a
// time. Every other fault is put back to what the program had, and happens again. Refused: stopping
// the program (it must run), and a test at each access (everybody would pay for it).
//
// A program that installs its own SIGSEGV handler afterwards, or blocks the signal, loses this
// help.

#include "runtime/core/shadow/lazy_shadow.h"

#include "runtime/core/system/kernel_signal.h"

namespace assay {
namespace {

constexpr uint64_t kPiece = 64 << 10;

constexpr int kMax = 8;

struct {
  struct {
    uint64_t begin, end;
  } spans[kMax];
  int used;
  KernelAction before; // what the program had
} constinit lazy = {};

bool is_lazy(uint64_t address) {
  for (int i = 0; i < lazy.used; i++)
    if (address >= lazy.spans[i].begin && address < lazy.spans[i].end)
      return true;
  return false;
}

void on_fault(int, siginfo_t *info, void *) {
  uint64_t address = (uint64_t)info->si_addr;
  if (is_lazy(address)) {
    long at = sys::map((void *)(address & ~(kPiece - 1)), kPiece, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    if (!sys::failed(at) || at == -17 /* another thread was faster */)
      return;
  }
  set_kernel_action(SIGSEGV, &lazy.before, nullptr);
}

} // namespace

// The handler is installed once: a second tool would take it for the program's.
void map_on_touch(uint64_t begin, uint64_t end) {
  if (lazy.used == kMax)
    return;
  lazy.spans[lazy.used++] = {begin, end};
  if (lazy.used > 1)
    return;
  KernelAction action = kernel_action(on_fault, SA_NODEFER);
  set_kernel_action(SIGSEGV, &action, &lazy.before);
}

} // namespace assay
