// One step of a shallow-water model: the loop nest of the paper's slides (calc1 of 312.swim), in C.
#include <stdio.h>

enum { kRows = 514, kColumns = 514 };
static double U[kColumns][kRows], V[kColumns][kRows], P[kColumns][kRows];
static double CU[kColumns][kRows], CV[kColumns][kRows], Z[kColumns][kRows], H[kColumns][kRows];

__attribute__((noinline)) void calc1(int m, int n, double fsdx, double fsdy) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      CU[j][i + 1] = .5 * (P[j][i + 1] + P[j][i]) * U[j][i + 1];
      CV[j + 1][i] = .5 * (P[j + 1][i] + P[j][i]) * V[j + 1][i];
      Z[j + 1][i + 1] =
          (fsdx * (V[j + 1][i + 1] - V[j + 1][i]) - fsdy * (U[j + 1][i + 1] - U[j][i + 1])) /
          (P[j][i] + P[j][i + 1] + P[j + 1][i + 1] + P[j + 1][i]);
      H[j][i] = P[j][i] + .25 * (U[j][i + 1] * U[j][i + 1] + U[j][i] * U[j][i] +
                                 V[j + 1][i] * V[j + 1][i] + V[j][i] * V[j][i]);
    }
}

int main(void) {
  for (int j = 0; j < kColumns; j++)
    for (int i = 0; i < kRows; i++) {
      P[j][i] = 50000 + i + j;
      U[j][i] = i - j;
      V[j][i] = j - i;
    }
  calc1(512, 512, 4. / 1e5, 4. / 1e5);
  printf("%g %g %g %g\n", CU[9][10], CV[10][9], Z[10][10], H[9][9]);
}
