// Twenty-two million small objects alive at once.
#include <stdio.h>
#include <stdlib.h>

enum { kObjects = 22000000 };

int main(void) {
  long **kept = malloc(sizeof *kept * kObjects), sum = 0;
  for (long i = 0; i < kObjects; i++) {
    kept[i] = malloc(16);
    *kept[i] = i;
  }
  for (long i = 0; i < kObjects; i++)
    sum += *kept[i];
  for (long i = 0; i < kObjects; i += 2)
    free(kept[i]);
  printf("%ld\n", sum);
}
