// A list of a hundred thousand items built by recursion, two hundred times: a stack as deep as the list is long.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct item {
  struct item *next;
  long value;
};

__attribute__((noinline)) static struct item *read_items(long left) {
  if (left == 0)
    return NULL;
  struct item *i = malloc(sizeof *i);
  i->value = left;
  i->next = read_items(left - 1);
  return i;
}

int main(int argc, char **argv) {
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur < 64 << 20 && argc == 1) {
    limit.rlim_cur = 64 << 20;
    setrlimit(RLIMIT_STACK, &limit);
    execl("/proc/self/exe", argv[0], "again", (char *)NULL);
  }
  long sum = 0;
  for (int round = 0; round < 200; round++)
    for (struct item *i = read_items(100000), *next; i; i = next) {
      next = i->next;
      sum += i->value;
      free(i);
    }
  printf("%ld\n", sum);
}
