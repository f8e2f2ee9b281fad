// Limits of memory that the program sets for itself. The kernel counts the addresses of our
// counters against RLIMIT_AS and RLIMIT_DATA, terabytes that nobody touches; with the program's own
// number it would get no memory any more. So the kernel gets that number and what is ours above it,
// and the program is told its own. What it executes gets the program's number again.
//
// What we reserve later, such as counters for the first thread, raises the soft limit; the hard
// limit has room for all of it.
//
// Refused: no limit at all where the program sets one, because a program that tests how it fails would not fail.
//
// Not covered: prlimit by another process, the system call itself, and the children of posix_spawn,
// system and popen, which execute inside libc: they keep the larger limit. The hard limit of what
// is executed stays larger, too: only privileged processes could take it back where exec fails.

#include <errno.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "runtime/core/process/interpose.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/kernel_signal.h"
#include "runtime/core/system/lock.h"

namespace assay {
namespace {

// Tables that grow later, headers of the program's objects. No multiple of what glibc takes for a
// thread's allocations, or it would be taken so.
constexpr uint64_t kRoom = 96 << 20;
// What may be reserved later: at most all addresses.
constexpr uint64_t kLater = 1ULL << 47;

struct Setting {
  rlimit told;  // what the program set
  rlimit given; // what the kernel has for it; zeros: the program set nothing
};

// Two settings, because the child of a fork may begin while another thread changes from one to the other.
struct MemoryLimit {
  int resource;
  Setting now, before;
};

struct {
  SpinLock lock;
  MemoryLimit limits[2];
} constinit state = {{}, {{RLIMIT_AS, {}, {}}, {RLIMIT_DATA, {}, {}}}};

long change_in_kernel(int resource, const rlimit *wanted, rlimit *before) {
  return sys::call(SYS_prlimit64, 0, resource, (long)wanted, (long)before);
}

bool equal(const rlimit &a, const rlimit &b) {
  return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
}

rlim_t with_ours(rlim_t bytes, uint64_t later) {
  const rlim_t sum = bytes + reserved_bytes() + kRoom + later;
  return sum < bytes ? RLIM_INFINITY : sum; // no limit stays none
}

// Null where nothing of ours counts.
MemoryLimit *find_limit(int resource) {
  for (MemoryLimit &limit : state.limits)
    if (limit.resource == resource)
      return &limit;
  return nullptr;
}

void raise_soft_limits(int64_t bytes);

rlimit told_for(const MemoryLimit &limit, const rlimit &kernel) {
  if (equal(kernel, limit.now.given))
    return limit.now.told;
  return equal(kernel, limit.before.given) ? limit.before.told : kernel;
}

// As prlimit of this process; returns 0 or -errno.
long change_limit(MemoryLimit &limit, const rlimit *wanted, rlimit *before) {
  rlimit kernel;
  if (long result = change_in_kernel(limit.resource, nullptr, &kernel); sys::failed(result))
    return result;
  const rlimit seen = told_for(limit, kernel);
  if (wanted && !owns_memory()) { // the child of a vfork has its own limits, and will execute
    if (long result = change_in_kernel(limit.resource, wanted, nullptr); sys::failed(result))
      return result;
  } else if (wanted) {
    if (wanted->rlim_cur > wanted->rlim_max)
      return -EINVAL;
    rlimit given = {with_ours(wanted->rlim_cur, 0), with_ours(wanted->rlim_max, kLater)};
    // Ours may have grown since the hard limit was set, or it was never raised: what the program may keep it keeps.
    if (wanted->rlim_max <= seen.rlim_max && given.rlim_max > kernel.rlim_max)
      given.rlim_max = kernel.rlim_max;
    if (given.rlim_cur > given.rlim_max)
      given.rlim_cur = given.rlim_max;
    raise_memory_limits = raise_soft_limits;
    const Setting before_now = limit.before;
    limit.before = limit.now;
    limit.now = {*wanted, given};
    if (long result = change_in_kernel(limit.resource, &given, nullptr); sys::failed(result)) {
      limit.now = limit.before;
      limit.before = before_now;
      return result;
    }
  }
  if (before)
    *before = seen;
  return 0;
}

int with_errno(long result) {
  if (!sys::failed(result))
    return 0;
  errno = (int)-result;
  return -1;
}

int change(pid_t process, int resource, const rlimit *wanted, rlimit *before) {
  MemoryLimit *limit =
      process == 0 || (uint32_t)process == sys::process_id() ? find_limit(resource) : nullptr;
  if (!limit)
    return with_errno(sys::call(SYS_prlimit64, process, resource, (long)wanted, (long)before));
  SignalsBlocked blocked;
  Locked locked(state.lock);
  return with_errno(change_limit(*limit, wanted, before));
}

// The soft limits of the kernel become those that the program set, or go back to what they were.
void change_soft_limits(bool to_told) {
  for (const MemoryLimit &limit : state.limits) {
    const Setting &now = limit.now;
    const rlimit told = {now.told.rlim_cur, now.given.rlim_max};
    rlimit kernel;
    if (!equal(now.told, now.given) &&
        !sys::failed(change_in_kernel(limit.resource, nullptr, &kernel)) &&
        equal(kernel, to_told ? now.given : told))
      change_in_kernel(limit.resource, to_told ? &told : &now.given, nullptr);
  }
}

void raise_soft_limits(int64_t bytes) {
  if (!owns_memory()) // the child of a vfork has its own limits
    return;
  SignalsBlocked blocked;
  Locked locked(state.lock);
  for (MemoryLimit &limit : state.limits) {
    rlimit kernel;
    if (equal(limit.now.told, limit.now.given) || limit.now.given.rlim_cur == RLIM_INFINITY ||
        sys::failed(change_in_kernel(limit.resource, nullptr, &kernel)) ||
        !equal(kernel, limit.now.given))
      continue;
    const rlimit given = {kernel.rlim_cur + (rlim_t)bytes, kernel.rlim_max};
    if (given.rlim_cur > given.rlim_max)
      continue;
    const Setting before_now = limit.before;
    limit.before = limit.now;
    limit.now.given = given;
    if (sys::failed(change_in_kernel(limit.resource, &given, nullptr))) {
      limit.now = limit.before;
      limit.before = before_now;
    }
  }
}

void reset_memory_limits_in_child() {
  state.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_memory_limits_in_child);

} // namespace

void give_memory_limits_to_exec() {
  change_soft_limits(true);
}

void take_memory_limits_from_exec() {
  change_soft_limits(false);
}

} // namespace assay

using namespace assay;

ASSAY_EXPORT int ASSAY_NAME(setrlimit)(__rlimit_resource_t resource, const rlimit *limit) noexcept {
  return change(0, (int)resource, limit, nullptr);
}
ASSAY_EXPORT int ASSAY_NAME(setrlimit64)(__rlimit_resource_t resource,
                                         const rlimit64 *limit) noexcept {
  return change(0, (int)resource, (const rlimit *)limit, nullptr);
}
ASSAY_EXPORT int ASSAY_NAME(getrlimit)(__rlimit_resource_t resource, rlimit *limit) noexcept {
  return change(0, (int)resource, nullptr, limit);
}
ASSAY_EXPORT int ASSAY_NAME(getrlimit64)(__rlimit_resource_t resource, rlimit64 *limit) noexcept {
  return change(0, (int)resource, nullptr, (rlimit *)limit);
}
ASSAY_EXPORT int ASSAY_NAME(prlimit)(pid_t process, __rlimit_resource resource, const rlimit *limit,
                                     rlimit *before) noexcept {
  return change(process, (int)resource, limit, before);
}
ASSAY_EXPORT int ASSAY_NAME(prlimit64)(pid_t process, __rlimit_resource resource,
                                       const rlimit64 *limit, rlimit64 *before) noexcept {
  return change(process, (int)resource, (const rlimit *)limit, (rlimit *)before);
}
