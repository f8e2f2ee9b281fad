// libc's free is called by the runtime, too, but with the allocator's block: there a word of the
// chunk map is never set. So it tells whether an object's address, or that of its chunk, is in the
// registers or in the frames from the signal to libc's free.

#include "runtime/core/process/foreign_free.h"

#include "runtime/core/runtime.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/core/system/real_functions.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

constexpr uint64_t kChunkBytes = 16; // from glibc's chunk to its block

bool is_object(uint64_t word) {
  if (word >> 47) // no address of a program's
    return false;
  return runtime.chunks.owns((const void *)word) ||
         runtime.chunks.owns((const void *)(word + kChunkBytes));
}

bool in_registers(const ucontext_t &context) {
  for (int each = REG_R8; each <= REG_RCX; each++)
    if (is_object((uint64_t)context.uc_mcontext.gregs[each]))
      return true;
  return false;
}

} // namespace

bool died_freeing_unseen(const ucontext_t &context) {
  constexpr int kMaxCalls = 12;
  if (!runtime.chunks.exists() || this_thread.busy)
    return false;
  ReentrancyGuard guard;
  const auto &registers = context.uc_mcontext.gregs;
  const auto begin = (uint64_t)registers[REG_RSP], end = end_of_stack(begin);
  LeftFrame left = {begin, 0, (uint64_t)registers[REG_RBP], (uint64_t)registers[REG_RIP] + 1};
  for (int calls = 0; end && calls < kMaxCalls; calls++) {
    const LeaveRule rule = leave_rule_at(left.pc);
    const bool is_freeing =
        rule.function == (uint64_t)real.free || rule.function == (uint64_t)real.realloc;
    if (!leave_frame(rule.bits, left.at, left.rbp, end, left))
      return false;
    if (!is_freeing)
      continue;
    for (uint64_t at = begin; at + 16 <= left.at;
         at += sizeof(uint64_t)) // but the place that it returns to
      if (is_object(*(const uint64_t *)at))
        return true;
    return in_registers(context);
  }
  return false;
}

} // namespace assay
