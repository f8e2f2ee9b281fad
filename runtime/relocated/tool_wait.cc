// What the program's threads tell the tool, and how they wait for it.

#include "runtime/relocated/relocated.h"
#include "runtime/relocated/sandbox.h"

#include "runtime/core/system/syscall.h"

#include <errno.h>

namespace assay::relocated {

// From another namespace of processes it cannot be seen: then it is taken to be gone after so many waits for it.
static bool is_tool_gone(uint32_t waits) {
  constexpr uint32_t kMaxWaits = 3000; // of a tenth of a second
  if (ring->pid_namespace != pid_namespace)
    return waits > kMaxWaits;
  return sys::call(SYS_kill, ring->tool, 0) == -ESRCH;
}

void wake_all(const uint32_t &word) {
  // Other processes wait and wake too: not the private kind.
  if (!is_sandboxed())
    sys::call(SYS_futex, (long)&word, FUTEX_WAKE, INT32_MAX);
}

void tell_tool() {
  __atomic_fetch_add(&ring->news, 1, __ATOMIC_RELEASE);
  wake_all(ring->news);
}

// Where no system call may be made. A pause takes 10 to 140 cycles.
static void spin(const uint32_t &word, uint32_t seen) {
  constexpr uint32_t kMax = UINT32_MAX; // without a sign of the tool: half a minute or more
  uint32_t polls = __atomic_load_n(&ring->polls, __ATOMIC_ACQUIRE);
  for (uint32_t pauses = 0; __atomic_load_n(&word, __ATOMIC_ACQUIRE) == seen &&
                            !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
       pauses++) {
    const uint32_t now = __atomic_load_n(&ring->polls, __ATOMIC_ACQUIRE);
    if (now != polls)
      pauses = 0;
    else if (pauses == kMax)
      __atomic_store_n(&ring->stopped, 1, __ATOMIC_RELEASE);
    polls = now;
    __builtin_ia32_pause();
  }
}

bool wait_for_tool(const uint32_t &word, uint32_t seen, uint32_t &waits) {
  if (is_sandboxed()) {
    spin(word, seen);
    return !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
  }
  const timespec t = {0, 100'000'000};
  const long waited = sys::call(SYS_futex, (long)&word, FUTEX_WAIT, seen, (long)&t);
  if (waited == -ETIMEDOUT && is_tool_gone(++waits))
    __atomic_store_n(&ring->stopped, 1, __ATOMIC_RELEASE);
  return !__atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
}

} // namespace assay::relocated
