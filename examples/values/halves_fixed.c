// The halves are put together in a register, and written as what is read.
#include <stdint.h>
#include <stdio.h>
static volatile union {
  uint32_t half[2];
  uint64_t whole;
} box;
__attribute__((noinline, noclone)) static uint64_t join(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; i++) {
    box.whole = (uint32_t)i | (i >> 1) << 32;
    sum += box.whole;
  }
  return sum;
}
int main(void) {
  printf("%llu\n", (unsigned long long)join(200000000));
}
