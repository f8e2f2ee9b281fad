// snapshots RESERVED_MIB TOUCHED_MIB STRIDE ROUNDS: reserves memory, touches a byte every STRIDE bytes of its first
// TOUCHED_MIB, ends the snapshot by a mark, ROUNDS times; prints the median of the marks' seconds.
#include <assay/annotate.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  size_t reserved = strtoull(argv[1], NULL, 0) << 20, touched = strtoull(argv[2], NULL, 0) << 20;
  size_t stride = strtoull(argv[3], NULL, 0), rounds = strtoull(argv[4], NULL, 0);
  char *memory = mmap(NULL, reserved, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  double *seconds = malloc(rounds * sizeof *seconds);
  if (memory == MAP_FAILED || !seconds)
    return 1;
  for (size_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < touched; i += stride)
      *(volatile char *)(memory + i) = 1;
    double begin = now();
    assay_mark("round");
    seconds[round] = now() - begin;
  }
  qsort(seconds, rounds, sizeof *seconds, compare);
  printf("%.9f\n", seconds[rounds / 2]);
  return 0;
}
