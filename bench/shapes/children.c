// Three hundred children, one after the other, each of which ends by exit, so that every profiler
// writes what it measured there.
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
  for (int i = 0; i < 300; i++) {
    pid_t child = fork();
    if (child == 0) {
      char *p = malloc(1000);
      memset(p, i, 1000);
      free(p);
      exit(i % 7);
    }
    int status;
    waitpid(child, &status, 0);
    good += WEXITSTATUS(status) == i % 7;
  }
  printf("%d\n", good);
}
