// A gigabyte of live heap in blocks of 4 KiB, of which one line in four is used, again and again.
#include <stdio.h>
#include <stdlib.h>

enum { kBlocks = 1 << 18, kBytes = 4096 };

int main(void) {
  char **blocks = malloc(kBlocks * sizeof *blocks);
  for (int i = 0; i < kBlocks; i++)
    blocks[i] = malloc(kBytes);
  long sum = 0;
  for (int round = 0; round < 10; round++)
    for (int i = 0; i < kBlocks; i++)
      for (int at = 0; at < kBytes; at += 256)
        sum += blocks[i][at]++;
  printf("%ld\n", sum);
  return 0;
}
