// Who asks for a filter does so by prctl or seccomp: moved code comes here before it makes such a
// call, or one whose number is not known, and libc's functions do where libc is not moved
// (preloaded/sandbox.cc). Most filters forbid little, and spinning costs where there are more
// threads than processors; so the filter is asked what it says to our calls. What depends on
// anything but the call's number counts as forbidden: it may be another answer the next time.
//
// Refused: to ask the kernel, which is a system call; to read the time stamp counter, which may be
// forbidden as well (PR_SET_TSC, and strict mode forbids it by itself).
//
// What executes another program leaves it its filters, which cannot be read. Where there are more
// than the tool runs under, they count as such that forbid our calls. What tells it, and the
// process's id, is read with calls that any loader makes.
//
// Not seen: a filter that code asks for which was not moved, and does not go through libc.

#include "runtime/relocated/sandbox.h"

#include "runtime/relocated/from_moved_code.h"

#include "abi/proc_text.h"
#include "runtime/core/system/syscall.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

namespace assay::relocated {
namespace {

bool sandboxed;
bool block_has_id;

constexpr uint64_t kSelfInBlock = 16, kIdInBlock = 720; // of glibc's thread, behind fs

// Whether a filter allows a system call whatever its arguments and wherever it is made.
class Filter {
public:
  explicit Filter(uint64_t program)
      : is_read_(sys::read_own_memory(program, &program_, sizeof program_)) {}

  bool allows(uint32_t number) const {
    uint32_t a = 0;
    for (uint32_t at = 0; is_read_ && at < program_.len; at++) {
      sock_filter step;
      if (!sys::read_own_memory((uint64_t)(program_.filter + at), &step, sizeof step))
        return false;
      switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (step.k == offsetof(seccomp_data, nr))
          a = number;
        else if (step.k == offsetof(seccomp_data, arch))
          a = AUDIT_ARCH_X86_64;
        else
          return false;
        break;
      case BPF_ALU | BPF_AND | BPF_K: a &= step.k; break;
      case BPF_JMP | BPF_JA: at += step.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += a == step.k ? step.jt : step.jf; break;
      case BPF_JMP | BPF_JGT | BPF_K: at += a > step.k ? step.jt : step.jf; break;
      case BPF_JMP | BPF_JGE | BPF_K: at += a >= step.k ? step.jt : step.jf; break;
      case BPF_JMP | BPF_JSET | BPF_K: at += a & step.k ? step.jt : step.jf; break;
      case BPF_RET | BPF_K: return step.k == SECCOMP_RET_ALLOW || step.k == SECCOMP_RET_LOG;
      default: return false;
      }
    }
    return false;
  }

private:
  sock_fprog program_ = {};
  bool is_read_;
};

bool allows_ours(uint64_t program) {
  const Filter filter(program);
  // Between the program's instructions, and for its next filter.
  constexpr uint32_t kOurs[] = {SYS_futex,           SYS_clock_gettime, SYS_kill,
                                SYS_getpid,          SYS_gettid,        SYS_readlinkat,
                                SYS_process_vm_readv};
  for (const uint32_t each : kOurs)
    if (!filter.allows(each))
      return false;
  return true;
}

void begin_sandbox() {
  const uint64_t fs = sys::thread_pointer();
  uint64_t self;
  uint32_t id;
  block_has_id = sys::read_own_memory(fs + kSelfInBlock, &self, sizeof self) && self == fs &&
                 sys::read_own_memory(fs + kIdInBlock, &id, sizeof id) && id == sys::thread_id();
  // The last time that it is woken.
  __atomic_store_n(&ring->looks_for_news, 1, __ATOMIC_RELEASE);
  tell_tool();
  __atomic_store_n(&sandboxed, true, __ATOMIC_RELEASE);
}

} // namespace

bool is_sandboxed() {
  return __atomic_load_n(&sandboxed, __ATOMIC_ACQUIRE);
}

void before_sandbox(uint64_t number, uint64_t first, uint64_t second, uint64_t third) {
  if (!ring || is_sandboxed())
    return;
  bool is_strict = false, is_filter = false;
  if (number == SYS_prctl && (uint32_t)first == PR_SET_SECCOMP) {
    is_strict = second == SECCOMP_MODE_STRICT;
    is_filter = second == SECCOMP_MODE_FILTER;
  } else if (number == SYS_seccomp) {
    is_strict = (uint32_t)first == SECCOMP_SET_MODE_STRICT;
    is_filter = (uint32_t)first == SECCOMP_SET_MODE_FILTER;
  }
  // Without a filter it only asks what the kernel knows.
  if (is_strict || (is_filter && third && !allows_ours(third)))
    begin_sandbox();
}

// In the tool's /proc, through which the shared memory was found: so the id is one that the tool knows.
uint32_t begin_under_filters() {
  char status[4096] = {};
  const long file = sys::open("/proc/self/status", O_RDONLY);
  if (sys::failed(file))
    return 0;
  const long size = sys::read(file, status, sizeof status - 1);
  sys::close(file);
  const uint32_t filters = assay_filters_in(status);
  if (size <= 0 || filters == UINT32_MAX || ring->filters == UINT32_MAX || filters <= ring->filters)
    return 0;
  __atomic_store_n(&ring->looks_for_news, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&sandboxed, true, __ATOMIC_RELEASE);
  const uint32_t id = assay_number_in(status, "Pid:");
  const uint64_t fs = sys::thread_pointer();
  block_has_id =
      *(const uint64_t *)(fs + kSelfInBlock) == fs && *(const uint32_t *)(fs + kIdInBlock) == id;
  return id;
}

uint32_t thread_id_without_call() {
  const uint64_t fs = sys::thread_pointer();
  uint64_t self;
  if (!block_has_id)
    return 0;
  __builtin_memcpy(&self, (const void *)(fs + kSelfInBlock), sizeof self);
  return self == fs ? __atomic_load_n((const uint32_t *)(fs + kIdInBlock), __ATOMIC_RELAXED) : 0;
}

extern "C" [[gnu::visibility("hidden")]] void
assay_before_system_call(const MovedRegisters *registers) {
  before_sandbox((uint32_t)thread_log.rax, registers->rdi, registers->rsi, registers->rdx);
}

ASSAY_FROM_MOVED_CODE("assay_before_call", "assay_before_system_call");

} // namespace assay::relocated
