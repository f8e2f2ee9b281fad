// Reads a list of a hundred thousand numbers, forty times, with cJSON: for the walk-through of README.md.
#include "cJSON.h"

#include <stdio.h>
#include <stdlib.h>

enum { kNumbers = 100000, kRounds = 40 };

int main(void) {
  char *text = malloc(kNumbers * 12 + 16), *at = text;
  unsigned seed = 1;
  *at++ = '[';
  for (int i = 0; i < kNumbers; i++) {
    seed = seed * 1664525 + 1013904223;
    at += sprintf(at, "%s%u.%02u", i ? "," : "", seed >> 22, (seed >> 10) % 100);
  }
  sprintf(at, "]");
  double sum = 0;
  for (int round = 0; round < kRounds; round++) {
    cJSON *all = cJSON_Parse(text), *each;
    cJSON_ArrayForEach(each, all) sum += each->valuedouble;
    cJSON_Delete(all);
  }
  printf("%.2f\n", sum);
  free(text);
}
