// The settings are loaded once, and whether to clip is decided outside of the loop.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct settings {
  uint64_t clip, scale;
};
__attribute__((noinline, noclone)) static void scale(uint64_t *numbers, int n,
                                                     const struct settings *settings) {
  const uint64_t clip = settings->clip, by = settings->scale;
  if (clip)
    for (int i = 0; i < n; i++)
      if (numbers[i] > clip)
        numbers[i] = clip;
  for (int i = 0; i < n; i++)
    numbers[i] *= by;
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
