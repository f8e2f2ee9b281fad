// The usual limit is asked for first: then there is no division.
#include <stdint.h>
#include <stdio.h>
__attribute__((noinline, noclone)) static uint64_t draw(uint64_t *state, uint64_t limit) {
  if (limit == 4096) {
    *state = *state * 6364136223846793005 + 1442695040888963407 + *state % 4096;
    return *state % 4096;
  }
  *state = *state * 6364136223846793005 + 1442695040888963407 + *state % limit;
  return *state % limit;
}
int main(int argc, char **argv) {
  uint64_t limit = argc > 1 ? 1009 : 4096, sum = 0, state = 1;
  for (int i = 0; i < 200000000; i++)
    sum += draw(&state, limit);
  printf("%llu\n", (unsigned long long)sum);
}
