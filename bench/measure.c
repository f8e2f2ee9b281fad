// measure FD COMMAND ARGUMENTS…: runs it with its output thrown away and prints, on one line, user and
// system seconds, the largest resident set in KiB, and the wait status. A small program of its own,
// since the kernel counts what the parent held before exec into a child's resident set. If FD is not -1,
// it first waits for a byte from there, or its end: what its parent attaches to it, the command inherits.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char byte;
  if (argc < 3)
    return 2;
  const int wait = atoi(argv[1]);
  if (wait >= 0 && (read(wait, &byte, 1) < 0 || close(wait)))
    return 2;
  pid_t pid = fork();
  if (pid < 0)
    return 2;
  if (pid == 0) {
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  int status;
  struct rusage used;
  if (wait4(pid, &status, 0, &used) != pid)
    return 2;
  printf("%ld.%06ld %ld.%06ld %ld %d\n", (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec,
         (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec, used.ru_maxrss, status);
}
