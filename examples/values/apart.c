// Reads one array and writes another one that lies 8192 bytes on: each load looks as if it read what was just stored.
#include <stdint.h>
#include <stdio.h>
#define SPACE 0
static uint32_t area[3 * 2048 + 1024] __attribute__((aligned(4096)));
__attribute__((noinline, noclone)) static void sums(volatile uint32_t *to,
                                                    volatile uint32_t *from) {
  uint32_t sum = 0;
  for (int i = 0; i < 1024; i++) {
    to[i] = sum;
    sum = (sum ^ from[i]) * 5;
  }
}
int main(void) {
  for (int i = 0; i < 200000; i++)
    sums(area, area + 2048 + SPACE);
  printf("%u\n", area[77]);
}
