// System calls without libc: the helper thread has no libc thread behind it, and nothing here may
// touch errno, be a cancellation point or be interposed by the program.
// Every function returns what the kernel returns: a result, or -errno.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

namespace assay::sys {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// Where the thread's fs begins, which the first word there says: no call.
inline uint64_t thread_pointer() {
  uint64_t fs;
  asm("mov %%fs:0, %0" : "=r"(fs));
  return fs;
}

inline bool failed(long result) {
  return result < 0 && result > -4096;
}

inline long open(const char *path, int flags, int mode = 0) {
  return call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode);
}
inline long close(long fd) {
  return call(SYS_close, fd);
}
inline long read(long fd, void *data, size_t size) {
  return call(SYS_read, fd, (long)data, (long)size);
}
inline long write(long fd, const void *data, size_t size) {
  return call(SYS_write, fd, (long)data, (long)size);
}
// Bytes that a file may have: beyond it the kernel sends SIGXFSZ.
inline uint64_t file_size_limit() {
  rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);
  return limit.rlim_cur;
}
inline long mkdir(const char *path, int mode) {
  return call(SYS_mkdirat, AT_FDCWD, (long)path, mode);
}
inline long unlink(const char *path) {
  return call(SYS_unlinkat, AT_FDCWD, (long)path, 0);
}
inline long read_link(const char *path, char *out, size_t size) {
  return call(SYS_readlinkat, AT_FDCWD, (long)path, (long)out, (long)size);
}
inline long map(void *at, size_t size, int protection, int flags, long fd = -1) {
  return call(SYS_mmap, (long)at, (long)size, protection, flags, fd, 0);
}
inline long unmap(void *at, size_t size) {
  return call(SYS_munmap, (long)at, (long)size);
}
inline long advise(void *at, size_t size, int advice) {
  return call(SYS_madvise, (long)at, (long)size, advice);
}
inline uint32_t process_id() {
  return (uint32_t)call(SYS_getpid);
}
inline uint32_t parent_process_id() {
  return (uint32_t)call(SYS_getppid);
}
inline uint32_t thread_id() {
  return (uint32_t)call(SYS_gettid);
}
inline bool thread_lives(uint32_t process, uint32_t thread) {
  return !failed(call(SYS_tgkill, process, thread, 0));
}
inline void yield() {
  call(SYS_sched_yield);
}
inline void sleep_ns(uint64_t below_a_second) {
  timespec t = {0, (long)below_a_second};
  call(SYS_nanosleep, (long)&t, 0);
}
[[noreturn]] inline void exit_process(int status) {
  for (;;)
    call(SYS_exit_group, status);
}

inline uint64_t clock_ns(int clock) {
  timespec t;
  call(SYS_clock_gettime, clock, (long)&t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// Sleeps until *word changes from value, it is woken, or the time has passed.
inline long futex_wait(const uint32_t *word, uint32_t value, uint64_t timeout_ns) {
  timespec t = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
  return call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, value, (long)&t);
}
inline long futex_wake(const uint32_t *word) {
  return call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1);
}

// Reads this process's own memory without faulting where it is gone.
inline long read_own_memory(const iovec *to, size_t to_count, const iovec *from,
                            size_t from_count) {
  return call(SYS_process_vm_readv,
              thread_id(), // not the process id: main may have ended before others
              (long)to, (long)to_count, (long)from, (long)from_count, 0);
}

inline bool read_own_memory(uint64_t from, void *to, size_t size) {
  const iovec local = {to, size}, remote = {(void *)from, size};
  return read_own_memory(&local, 1, &remote, 1) == (long)size;
}

} // namespace assay::sys
