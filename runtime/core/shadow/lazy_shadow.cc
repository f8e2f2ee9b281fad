// 64 KiB of shadow, which cover 512 KiB of program, at a time. Refused: stopping the program (it
// must run), and a test at each access (everybody would pay for it).
//
// A program that is told that there is no more memory goes on with what it has, and that needs
// shadow. So some addresses are held back, and the first shadow that finds no room takes from
// these.

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
  uint64_t held; // begin of the addresses that are held back
  int64_t held_pieces;
} constinit lazy = {};

constexpr int64_t kHeldPieces = 128;

long map_shadow(uint64_t at, uint64_t bytes, int flags) {
  return sys::map((void *)at, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags);
}

void hold_back() {
  const long begin = map_shadow(0, kHeldPieces * kPiece, 0);
  if (sys::failed(begin))
    return;
  lazy.held = (uint64_t)begin;
  lazy.held_pieces = kHeldPieces;
}

// False where nothing is left.
bool let_go_of_piece() {
  const int64_t last = __atomic_sub_fetch(&lazy.held_pieces, 1, __ATOMIC_RELAXED);
  return last >= 0 &&
         !sys::failed(sys::unmap((void *)(lazy.held + (uint64_t)last * kPiece), kPiece));
}

bool is_lazy(uint64_t address) {
  for (int i = 0; i < lazy.used; i++)
    if (address >= lazy.spans[i].begin && address < lazy.spans[i].end)
      return true;
  return false;
}

} // namespace

void map_on_touch(uint64_t begin, uint64_t end) {
  if (!lazy.used)
    hold_back();
  if (lazy.used < kMax)
    lazy.spans[lazy.used++] = {begin, end};
}

bool is_shadow_lazy() {
  return lazy.used > 0;
}

bool map_touched(uint64_t address) {
  if (!is_lazy(address))
    return false;
  long at;
  do // another thread may have taken what was let go
    at = map_shadow(address & ~(kPiece - 1), kPiece, MAP_FIXED_NOREPLACE);
  while (at == -ENOMEM && let_go_of_piece());
  return !sys::failed(at) || at == -EEXIST; // another thread was faster
}

} // namespace assay
