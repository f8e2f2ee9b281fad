// The program of begins*.test: its argument says how a thread or process of it begins.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kSize = 1 << 20 };
static volatile long table[512];
// Logs a value in each iteration: what another thread writes in between is no group.
__attribute__((noinline)) static void work(long n) {
  unsigned long chance = (unsigned long)n;
  for (long i = 0; i < n; i++) {
    chance = chance * 6364136223846793005ul + (unsigned long)table[chance >> 55]++ + 1;
    if (chance & 1 << 20)
      table[chance >> 60]++;
    else
      table[3]++;
  }
}

// A thread made without libc, with thread-local storage that is used again.
static char *block;
static volatile int running;
static int rounds;
__attribute__((noinline)) static void body(void) {
  for (int i = 0; i < rounds; i++) {
    work(100);
    for (volatile int k = 0; k < 10000; k++)
      ;
  }
  for (;;) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
  }
}
__attribute__((noinline)) static void start(int how_many) {
  if (!block) {
    block = mmap(0, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(void **)(block + kSize / 2) = block + kSize / 2;
  }
  rounds = how_many;
  running = 1;
  long result;
  register long r10 __asm__("r10") = (long)&running;
  register long r8 __asm__("r8") = (long)(block + kSize / 2);
  __asm__ volatile("syscall\n\ttest %%eax, %%eax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tcall *%[body]\n\tud2\n1:"
                   : "=a"(result)
                   : "a"(SYS_clone),
                     "D"(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_CHILD_CLEARTID),
                     "S"(block + kSize - 64), "d"(0L), "r"(r10), "r"(r8), [body] "b"(&body)
                   : "rcx", "r11", "memory", "cc");
}
static void finish(void) {
  while (running)
    usleep(1000);
}
static void end_of(pid_t child) {
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    abort();
}
static int in_clone(void *unused) {
  work(1000);
  (void)unused;
  return 0;
}
static void *thread(void *unused) {
  for (int i = 0; i < 20; i++) {
    work(100);
    usleep(30000);
  }
  return unused;
}
static void threads(void) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&all[i], 0, thread, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(all[i], 0);
}
static volatile pid_t made = -1;
static void on_signal(int number) {
  work(10);
  made = fork();
  work(20);
  (void)number;
}
static void on_nested(int number) {
  if (number == SIGUSR1)
    raise(SIGUSR2);
  work(10);
}

int main(int c, char **v) {
  const char *what = c > 1 ? v[1] : "";
  if (!strcmp(what, "again")) { // longer than it takes to see that a thread is gone
    for (int i = 0; i < 4; i++) {
      start(10);
      finish();
      usleep(300000);
    }
  } else if (!strcmp(what, "child")) { // both at once
    start(200);
    usleep(20000);
    pid_t child = fork();
    if (!child) {
      start(200);
      work(1000);
      finish();
      _exit(0);
    }
    work(1000);
    finish();
    end_of(child);
  } else if (!strcmp(what, "copies")) {
    for (int i = 0; i < 20; i++) {
      pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
      work(1000);
      if (!child)
        _exit(0);
      pid_t other = _Fork();
      work(1000);
      if (!other)
        _exit(0);
      pid_t third = clone(in_clone, (char *)malloc(kSize) + kSize, SIGCHLD, 0);
      work(1000);
      end_of(child);
      end_of(other);
      end_of(third);
    }
  } else if (!strcmp(what, "vfork")) {
    for (int i = 0; i < 20; i++) {
      pid_t child = vfork();
      if (!child) {
        work(10);
        _exit(0);
      }
      end_of(child);
      char *const command[] = {"/bin/true", 0};
      posix_spawn(&child, "/bin/true", 0, 0, command, environ);
      work(10);
      end_of(child);
    }
  } else if (!strcmp(what, "handler")) {
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 10; i++) {
      raise(SIGUSR1);
      work(1000);
      if (!made)
        _exit(0);
      end_of(made);
    }
  } else if (!strcmp(what, "nested")) {
    signal(SIGUSR1, on_nested);
    signal(SIGUSR2, on_nested);
    for (int i = 0; i < 10; i++) {
      work(1000);
      raise(SIGUSR1);
    }
  } else if (!strcmp(what, "namespace")) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
      abort();
    pid_t child = fork();
    if (!child) {
      threads();
      _exit(0);
    }
    end_of(child);
  } else if (!strcmp(what, "threads")) {
    threads();
  } else { // outlives the program, which ends when each child has called work 200 times
    int pipes[2];
    char byte;
    if (pipe(pipes))
      abort();
    for (int i = 0; i < 3; i++)
      if (!fork()) {
        close(1), close(2);
        for (int k = 0; k < 4000; k++) {
          work(1000);
          if (k == 199 && write(pipes[1], "", 1) != 1)
            abort();
        }
        _exit(0);
      }
    for (int i = 0; i < 3; i++)
      if (read(pipes[0], &byte, 1) != 1)
        abort();
  }
  printf("%s\n", what);
}
