// The ways a process ends, multiplies, or loses a module. libc's exit runs our last destructor
// (lifecycle.cc); the ways that run none are interposed here. posix_spawn and vfork need nothing:
// their children share or replace the memory without coming through here, and `runtime.pid` tells
// them apart.

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/core/interpose.h"
#include "runtime/core/runtime.h"
#include "runtime/core/syscall.h"

using namespace assay;

namespace {

[[noreturn]] void exit_at_once(int status) {
  finish(ASSAY_END_QUICK, status);
  sys::exit_process(status);
}

// The arguments of execl(path, a, b, …, NULL[, envp]).
char *const *collect(va_list arguments, const char *first, char **out, size_t limit) {
  size_t n = 0;
  out[n++] = (char *)first;
  while (out[n - 1] && n < limit)
    out[n++] = va_arg(arguments, char *);
  return out;
}

constexpr size_t kMaxArguments = 4096;

// Everything is in the file before the process becomes another; if it does not, it goes on as
// before.
template <typename Exec> int exec_with(Exec exec) {
  find_real_functions();
  prepare_for_exec();
  int result = exec();
  continue_after_exec();
  return result;
}

} // namespace

ASSAY_EXPORT void _exit(int status) {
  exit_at_once(status);
}
ASSAY_EXPORT void _Exit(int status) {
  exit_at_once(status);
}

ASSAY_EXPORT void quick_exit(int status) {
  find_real_functions();
  finish(ASSAY_END_QUICK, status);
  real.quick_exit(status);
  __builtin_unreachable();
}

ASSAY_EXPORT int dlclose(void *handle) {
  find_real_functions();
  before_unload();
  int result = real.dlclose(handle);
  after_unload();
  return result;
}

ASSAY_EXPORT pid_t fork(void) {
  find_real_functions();
  pid_t child = real.fork();
  if (child == 0)
    continue_in_child();
  return child;
}

ASSAY_EXPORT int execve(const char *path, char *const *argv, char *const *envp) {
  return exec_with([&] { return real.execve(path, argv, envp); });
}

ASSAY_EXPORT int execv(const char *path, char *const *argv) {
  return exec_with([&] { return real.execve(path, argv, environ); });
}

ASSAY_EXPORT int execvpe(const char *file, char *const *argv, char *const *envp) {
  return exec_with([&] { return real.execvpe(file, argv, envp); });
}

ASSAY_EXPORT int execvp(const char *file, char *const *argv) {
  return exec_with([&] { return real.execvpe(file, argv, environ); });
}

ASSAY_EXPORT int fexecve(int fd, char *const *argv, char *const *envp) {
  return exec_with([&] { return real.fexecve(fd, argv, envp); });
}

ASSAY_EXPORT int execl(const char *path, const char *first, ...) {
  char *argv[kMaxArguments];
  va_list arguments;
  va_start(arguments, first);
  collect(arguments, first, argv, kMaxArguments);
  va_end(arguments);
  return execv(path, argv);
}

ASSAY_EXPORT int execlp(const char *file, const char *first, ...) {
  char *argv[kMaxArguments];
  va_list arguments;
  va_start(arguments, first);
  collect(arguments, first, argv, kMaxArguments);
  va_end(arguments);
  return execvp(file, argv);
}

ASSAY_EXPORT int execle(const char *path, const char *first, ...) {
  char *argv[kMaxArguments];
  va_list arguments;
  va_start(arguments, first);
  collect(arguments, first, argv, kMaxArguments);
  char *const *envp = va_arg(arguments, char *const *);
  va_end(arguments);
  return execve(path, argv, envp);
}
