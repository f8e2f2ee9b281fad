// 64 KiB of shadow, which cover 512 KiB of program, at a time. Refused: stopping the program (it must run), and a test at each
// access (everybody would pay for it).

#include "runtime/core/shadow/lazy_shadow.h"

#include <errno.h>
#include <sys/mman.h>

#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

constexpr uint64_t kPiece = 64 << 10;
constexpr int kMax = 8;

struct {
  struct {
    uint64_t begin, end;
  } spans[kMax];
  int used;
} constinit lazy = {};

bool is_lazy(uint64_t address) {
  for (int i = 0; i < lazy.used; i++)
    if (address >= lazy.spans[i].begin && address < lazy.spans[i].end)
      return true;
  return false;
}

} // namespace

void map_on_touch(uint64_t begin, uint64_t end) {
  if (lazy.used < kMax)
    lazy.spans[lazy.used++] = {begin, end};
}

bool is_shadow_lazy() {
  return lazy.used > 0;
}

bool map_touched(uint64_t address) {
  if (!is_lazy(address))
    return false;
  long at = sys::map((void *)(address & ~(kPiece - 1)), kPiece, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
  return !sys::failed(at) || at == -EEXIST; // another thread was faster
}

} // namespace assay
