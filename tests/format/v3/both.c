// Built for heap and working set: units have a mode for each tool.
#include <assay/annotate.h>
#include <stdlib.h>

static volatile char table[64 * 1024];

int main(void) {
  for (int i = 0; i < 1024; i++)
    table[i * 64] = 1;
  assay_mark("table");
  volatile char *buffer = malloc(64 * 100);
  for (int i = 0; i < 100; i++)
    buffer[i * 64] = 2;
  assay_mark("buffer");
  free((void *)buffer);
}
