// The ways a process ends, multiplies, or loses a module. libc's exit runs our last destructor
// (lifecycle.cc); the ways that run none are interposed here. posix_spawn and vfork need nothing:
// their children share or replace the memory without coming through here, and `runtime.pid` tells
// them apart.

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/core/process/interpose.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/exec_arguments.h"
#include "runtime/core/system/helper_thread.h"
#include "runtime/core/system/syscall.h"

using namespace assay;

namespace {

[[noreturn]] void exit_at_once(int status) {
  finish(ASSAY_END_QUICK, status);
  sys::exit_process(status);
}

// Everything is in the file before the process becomes another; if it does not, it goes on as
// before.
template <typename Exec> int exec_with(Exec exec) {
  find_real_functions();
  prepare_for_exec();
  give_memory_limits_to_exec();
  int result = exec();
  take_memory_limits_from_exec();
  continue_after_exec();
  return result;
}

template <typename Fork> pid_t fork_with(Fork fork) {
  find_real_functions();
  const pid_t child = fork();
  if (child == 0)
    continue_in_child();
  return child;
}

} // namespace

ASSAY_EXPORT void ASSAY_NAME(_exit)(int status) {
  exit_at_once(status);
}
ASSAY_EXPORT void ASSAY_NAME(_Exit)(int status) {
  exit_at_once(status);
}

ASSAY_EXPORT void ASSAY_NAME(quick_exit)(int status) {
  find_real_functions();
  finish(ASSAY_END_QUICK, status);
  real.quick_exit(status);
  __builtin_unreachable();
}

ASSAY_EXPORT int ASSAY_NAME(dlclose)(void *handle) {
  find_real_functions();
  before_unload();
  int result = real.dlclose(handle);
  after_unload();
  return result;
}

ASSAY_EXPORT pid_t ASSAY_NAME(fork)(void) {
  return fork_with([] { return real.fork(); });
}

// Of glibc since 2.34: without the handlers of pthread_atfork.
ASSAY_EXPORT pid_t ASSAY_NAME(_Fork)(void) {
  return fork_with([] { return real._Fork ? real._Fork() : real.fork(); });
}

ASSAY_EXPORT pid_t ASSAY_NAME(forkpty)(int *terminal, char *name, const termios *settings,
                                       const winsize *size) {
  return fork_with([&] { return real.forkpty(terminal, name, settings, size); });
}

namespace {

struct Cloned {
  int (*run)(void *);
  void *argument;
};

// libc ends such a child, or its first thread if it has others, by the system call exit.
int run_cloned(void *given) {
  const Cloned cloned = *(const Cloned *)given;
  continue_in_child();
  const int status = cloned.run(cloned.argument);
  finish(ASSAY_END_QUICK, status);
  end_helper_thread();
  return status;
}

} // namespace

// With memory of its own the child is that of a fork. Else it is a thread, or that of a vfork.
ASSAY_EXPORT int ASSAY_NAME(clone)(int (*run)(void *), void *stack, int flags, void *argument,
                                   ...) {
  find_real_functions();
  va_list more;
  va_start(more, argument);
  pid_t *parent_id = va_arg(more, pid_t *);
  void *thread_storage = va_arg(more, void *);
  pid_t *child_id = va_arg(more, pid_t *);
  va_end(more);
  if (!run || flags & CLONE_VM)
    return real.clone(run, stack, flags, argument, parent_id, thread_storage, child_id);
  Cloned cloned = {run, argument}; // the child has a copy of this stack, too
  return real.clone(run_cloned, stack, flags, &cloned, parent_id, thread_storage, child_id);
}

// libc's daemon forks and exits inside itself, where we cannot see it.
ASSAY_EXPORT int ASSAY_NAME(daemon)(int keep_folder, int keep_streams) {
  pid_t child = ASSAY_NAME(fork)();
  if (child < 0)
    return -1;
  if (child > 0)
    exit_at_once(0);
  if (setsid() < 0)
    return -1;
  if (!keep_folder && chdir("/") != 0)
    return -1;
  if (keep_streams)
    return 0;
  int null = open("/dev/null", O_RDWR);
  if (null < 0)
    return -1;
  for (int stream = 0; stream < 3; stream++)
    dup2(null, stream);
  if (null > 2)
    close(null);
  return 0;
}

ASSAY_EXPORT int ASSAY_NAME(execve)(const char *path, char *const *argv, char *const *envp) {
  return exec_with([&] { return real.execve(path, argv, envp); });
}

ASSAY_EXPORT int ASSAY_NAME(execv)(const char *path, char *const *argv) {
  return exec_with([&] { return real.execve(path, argv, environ); });
}

ASSAY_EXPORT int ASSAY_NAME(execvpe)(const char *file, char *const *argv, char *const *envp) {
  return exec_with([&] { return real.execvpe(file, argv, envp); });
}

ASSAY_EXPORT int ASSAY_NAME(execvp)(const char *file, char *const *argv) {
  return exec_with([&] { return real.execvpe(file, argv, environ); });
}

ASSAY_EXPORT int ASSAY_NAME(fexecve)(int fd, char *const *argv, char *const *envp) {
  return exec_with([&] { return real.fexecve(fd, argv, envp); });
}

// By the system call: glibc has the function since 2.34.
ASSAY_EXPORT int ASSAY_NAME(execveat)(int folder, const char *path, char *const *argv,
                                      char *const *envp, int flags) {
  return exec_with([&] {
    const long result = sys::call(SYS_execveat, folder, (long)path, (long)argv, (long)envp, flags);
    errno = (int)-result;
    return -1;
  });
}

ASSAY_EXPORT int ASSAY_NAME(execl)(const char *path, const char *first, ...) {
  ASSAY_EXEC_ARGUMENTS(argv, first, arguments);
  va_end(arguments);
  return ASSAY_NAME(execv)(path, argv);
}

ASSAY_EXPORT int ASSAY_NAME(execlp)(const char *file, const char *first, ...) {
  ASSAY_EXEC_ARGUMENTS(argv, first, arguments);
  va_end(arguments);
  return ASSAY_NAME(execvp)(file, argv);
}

ASSAY_EXPORT int ASSAY_NAME(execle)(const char *path, const char *first, ...) {
  ASSAY_EXEC_ARGUMENTS(argv, first, arguments);
  char *const *envp = va_arg(arguments, char *const *);
  va_end(arguments);
  return ASSAY_NAME(execve)(path, argv, envp);
}
