// Two thousand children, one after the other, of a process with a few megabytes. They end by _exit,
// where MemProf writes nothing of them: children.c has the same with exit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  char *blocks[100];
  for (int i = 0; i < 100; i++)
    memset(blocks[i] = malloc(100000), i, 100000);
  int good = 0;
  for (int i = 0; i < 2000; i++) {
    pid_t child = fork();
    if (child == 0) {
      char *p = malloc(1000);
      memset(p, i, 1000);
      free(p);
      _exit(i % 7);
    }
    int status;
    waitpid(child, &status, 0);
    good += WEXITSTATUS(status) == i % 7;
  }
  printf("%d\n", good);
}
