// Stores through pointers, and loads from where one of them leads: the load may run before the store has its address.
#include <stdint.h>
#include <stdio.h>
static uint64_t places[4096], *to[4096];
__attribute__((noinline, noclone)) static uint64_t follow(uint64_t n, volatile uint64_t *last) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; i++) {
    *to[(i * 7) & 4095] = i;
    sum += *last;
  }
  return sum;
}
int main(void) {
  for (int i = 0; i < 4096; i++)
    to[i] = &places[i % 4 ? 8 : i];
  printf("%llu\n", (unsigned long long)follow(200000000, &places[8]));
}
