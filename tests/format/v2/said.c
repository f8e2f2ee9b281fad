// The program that wrote said.assay, with -O1 -fassay-heap=globals and the options free_stacks=1:mmap=1: what a
// program says of itself, a pool, a mapping, a global, and where things are freed.
#define _GNU_SOURCE
#include <assay/annotate.h>
#include <stdlib.h>
#include <sys/mman.h>

volatile long hits[8];
static char arena[640] __attribute__((aligned(64)));

static void forget(void *p) {
  free(p);
}

int main(void) {
  free(malloc(5000));
  assay_reset();
  assay_mark("work");
  assay_register_pool(arena, "nodes");
  for (int i = 0; i < 10; i++) {
    volatile char *p = malloc(100);
    p[0] = 1;
    hits[i % 8]++;
    forget((void *)p);
    assay_event("turn", 3);
    assay_pool_allocate(arena, arena + 64 * i, 64);
    ((volatile char *)arena)[64 * i] = 1;
  }
  assay_pool_clear(arena);
  volatile char *pages =
      mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pages[5000] = 1;
  return 0;
}
