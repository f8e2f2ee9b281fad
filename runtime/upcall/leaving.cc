// Where a program goes where we must not follow: it confines itself to some system calls (seccomp),
// so that one of ours would end it, or executes another program.

#include "runtime/upcall/upcall.h"

#include "runtime/core/system/exec_arguments.h"
#include "runtime/core/system/syscall.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

namespace assay::upcall {
namespace {

// Our signal may be blocked, and then one would wait for the program that is executed.
template <class Exec> int exec_with(Exec exec) {
  const bool is_sampled = shared.header && mine && is_in_own_process();
  if (is_sampled) {
    stop_sampling(*mine);
    end_masked(*mine);
    take_back_waiting();
  }
  const int result = exec();
  if (is_sampled)
    sample_thread();
  return result;
}

} // namespace

// From syscall() and prctl(), which pass everything on as it is. What is executed later is confined
// as well: it does not find us.
extern "C" [[gnu::visibility("hidden")]] void assay_upcall_confine() {
  if (!shared.header || !mine || !is_in_own_process())
    return;
  is_off = true;
  stop_sampling(*mine);
  for (char **each = environ; each && *each; each++)
    if (strncmp(*each, ASSAY_UPCALL_ENVIRONMENT "=", sizeof ASSAY_UPCALL_ENVIRONMENT) == 0)
      (*each)[sizeof ASSAY_UPCALL_ENVIRONMENT] = 0;
}
extern "C" [[gnu::visibility("hidden")]] void *assay_upcall_real_syscall() {
  static void *real;
  return real_function(real, "syscall");
}
extern "C" [[gnu::visibility("hidden")]] void *assay_upcall_real_prctl() {
  static void *real;
  return real_function(real, "prctl");
}

} // namespace assay::upcall

// Both take as many arguments as the call that is meant, so they only look at the first. seccomp is
// 317, PR_SET_SECCOMP 22.
#define ASSAY_LOOK_AT(name, number)                                                                \
  asm(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                             \
      "push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n push %rax\n"          \
      "cmp $" number                                                                               \
      ", %edi\n jne 1f\n call assay_upcall_confine\n1: call assay_upcall_real_" name               \
      "\n mov %rax, %r11\n"                                                                        \
      "pop %rax\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n jmp *%r11\n"     \
      ".size " name ", . - " name "\n")
ASSAY_LOOK_AT("syscall", "317");
ASSAY_LOOK_AT("prctl", "22");

using namespace assay::upcall;

ASSAY_EXPORT int execve(const char *path, char *const *argv, char *const *envp) noexcept {
  static int (*real)(const char *, char *const *, char *const *);
  return exec_with([&] { return real_function(real, "execve")(path, argv, envp); });
}
ASSAY_EXPORT int execv(const char *path, char *const *argv) noexcept {
  static int (*real)(const char *, char *const *);
  return exec_with([&] { return real_function(real, "execv")(path, argv); });
}
ASSAY_EXPORT int execvp(const char *file, char *const *argv) noexcept {
  static int (*real)(const char *, char *const *);
  return exec_with([&] { return real_function(real, "execvp")(file, argv); });
}
ASSAY_EXPORT int execvpe(const char *file, char *const *argv, char *const *envp) noexcept {
  static int (*real)(const char *, char *const *, char *const *);
  return exec_with([&] { return real_function(real, "execvpe")(file, argv, envp); });
}
ASSAY_EXPORT int execveat(int folder, const char *path, char *const *argv, char *const *envp,
                          int flags) noexcept {
  return exec_with([&] {
    const long result =
        assay::sys::call(SYS_execveat, folder, (long)path, (long)argv, (long)envp, flags);
    errno = (int)-result;
    return -1;
  });
}

// libc's own would call its execve, not ours.
ASSAY_EXPORT int execl(const char *path, const char *first, ...) noexcept {
  ASSAY_EXEC_ARGUMENTS(argv, first, arguments);
  va_end(arguments);
  return execv(path, argv);
}
ASSAY_EXPORT int execlp(const char *file, const char *first, ...) noexcept {
  ASSAY_EXEC_ARGUMENTS(argv, first, arguments);
  va_end(arguments);
  return execvp(file, argv);
}
ASSAY_EXPORT int execle(const char *path, const char *first, ...) noexcept {
  ASSAY_EXEC_ARGUMENTS(argv, first, arguments);
  char *const *envp = va_arg(arguments, char *const *);
  va_end(arguments);
  return execve(path, argv, envp);
}

ASSAY_EXPORT int fexecve(int file, char *const *argv, char *const *envp) noexcept {
  static int (*real)(int, char *const *, char *const *);
  return exec_with([&] { return real_function(real, "fexecve")(file, argv, envp); });
}
