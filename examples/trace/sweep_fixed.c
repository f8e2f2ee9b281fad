// The same sums, row by row: neighbours in memory are added one after the other.
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 1000, kColumns = 1024 };

int main(void) {
  double (*table)[kColumns] = malloc(kRows * sizeof *table);
  for (int row = 0; row < kRows; row++)
    for (int column = 0; column < kColumns; column++)
      table[row][column] = row ^ column;
  double sums[kColumns] = {0};
  for (int row = 0; row < kRows; row++)
    for (int column = 0; column < kColumns; column++)
      sums[column] += table[row][column];
  printf("%.0f %.0f\n", sums[1], sums[1000]);
  free(table);
  return 0;
}
