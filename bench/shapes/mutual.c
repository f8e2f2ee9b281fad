// Two functions that call each other in any order, and allocate at the end of each path: 2^20 call paths,
// each four times; half of the objects stay.
#include <stdio.h>
#include <stdlib.h>

static long objects;
static void second(int depth, unsigned bits);

__attribute__((noinline)) static void allocate(unsigned bits) {
  volatile char *p = malloc(24);
  p[0] = 1;
  objects++;
  if (bits & 1)
    free((void *)p);
}
__attribute__((noinline)) static void first(int depth, unsigned bits) {
  if (depth == 0)
    allocate(bits);
  else if (bits & 1)
    first(depth - 1, bits >> 1);
  else
    second(depth - 1, bits >> 1);
  __asm__ volatile("");
}
__attribute__((noinline)) static void second(int depth, unsigned bits) {
  if (depth == 0)
    allocate(bits);
  else if (bits & 1)
    first(depth - 1, bits >> 1);
  else
    second(depth - 1, bits >> 1);
  __asm__ volatile("");
}

int main(void) {
  for (unsigned i = 0; i < 4u << 20; i++)
    first(20, i);
  printf("%ld\n", objects);
}
