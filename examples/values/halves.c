// Writes a number as two halves and reads it as a whole: the processor cannot pass on what it has not written yet.
#include <stdint.h>
#include <stdio.h>
static volatile union {
  uint32_t half[2];
  uint64_t whole;
} box;
__attribute__((noinline, noclone)) static uint64_t join(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; i++) {
    box.half[0] = i;
    box.half[1] = i >> 1;
    sum += box.whole;
  }
  return sum;
}
int main(void) {
  printf("%llu\n", (unsigned long long)join(200000000));
}
