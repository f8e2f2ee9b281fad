// The program of harm.test and full_disk.test.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int a[4096];
static volatile unsigned long chance = 1; // in memory, so that it is logged; at random, so that it does not compress
int main(int c, char **v) {
  long n = atol(v[1]), s = 0;
  for (long i = 0; i < n; i++) {
    chance = chance * 6364136223846793005ul + 1442695040888963407ul;
    s += a[chance >> 52]++;
  }
  if (c > 2)
    raise(SIGKILL);
  printf("%ld\n", s);
}
