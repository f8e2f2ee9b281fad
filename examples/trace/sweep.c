// The sums of the columns of a table that is stored by rows.
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 1000, kColumns = 1024 };

int main(void) {
  double (*table)[kColumns] = malloc(kRows * sizeof *table);
  for (int row = 0; row < kRows; row++)
    for (int column = 0; column < kColumns; column++)
      table[row][column] = row ^ column;
  double sums[kColumns] = {0};
  for (int column = 0; column < kColumns; column++)
    for (int row = 0; row < kRows; row++)
      sums[column] += table[row][column];
  printf("%.0f %.0f\n", sums[1], sums[1000]);
  free(table);
  return 0;
}
