// Scales numbers, as its settings say. Each round loads them again, because what it writes might be the settings.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct settings {
  uint64_t clip, scale;
};
__attribute__((noinline, noclone)) static void scale(uint64_t *numbers, int n,
                                                     const struct settings *settings) {
  for (int i = 0; i < n; i++) {
    if (settings->clip && numbers[i] > settings->clip)
      numbers[i] = settings->clip;
    numbers[i] *= settings->scale;
  }
}
int main(int argc, char **argv) {
  struct settings settings = {argc > 1 ? strtoull(argv[1], 0, 0) : 0, 3};
  static uint64_t numbers[4096];
  for (int i = 0; i < 4096; i++)
    numbers[i] = i;
  for (int i = 0; i < 160000; i++)
    scale(numbers, 4096, &settings);
  printf("%llu\n", (unsigned long long)numbers[77]);
}
