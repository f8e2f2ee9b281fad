// assay-cc keeps frame pointers, so the chain is complete inside instrumented code. Code without them
// uses rbp for anything: each step must stay inside the current stack and go outwards, which makes a
// wrong chain end early but never read beyond the stack. The bounds of a stack come from
// /proc/self/maps, once for each thread (and once more when it moves to another stack, as coroutines do).

#include "runtime/core/unwind.h"

#include "runtime/core/proc_maps.h"
#include "runtime/core/thread.h"

namespace assay {
namespace {

bool find_stack(uint64_t sp) {
  // A main stack grows downwards inside room that the kernel keeps free below it.
  constexpr uint64_t kGrowth = 8 << 20;
  MapsReader maps;
  MapsLine line;
  while (maps.next(line))
    if (line.start <= sp && sp < line.end) {
      this_thread.stack_high = line.end;
      this_thread.stack_low = line.is_stack() && line.start > kGrowth ? line.start - kGrowth : line.start;
      return true;
    }
  return false;
}

} // namespace

void unwind(const void *frame, size_t limit, Stack &out) {
  uint64_t fp = (uint64_t)frame;
  out.depth = 0;
  out.cut = false;
  if ((fp < this_thread.stack_low || fp >= this_thread.stack_high) && !find_stack(fp))
    return;
  uint64_t last = this_thread.stack_high - 16;
  while (fp <= last && fp % 8 == 0) {
    uint64_t next = ((const uint64_t *)fp)[0], pc = ((const uint64_t *)fp)[1];
    if (pc < 4096)
      break;
    if (out.depth == limit) {
      out.cut = true;
      break;
    }
    out.pcs[out.depth++] = pc;
    if (next <= fp)
      break;
    fp = next;
  }
}

} // namespace assay
