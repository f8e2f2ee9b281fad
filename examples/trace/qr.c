// Factorises a matrix as fits by least squares do (QR with column pivoting), and prints checksums: `qr ROWS COLUMNS`.
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
  size_t columns = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
  gsl_matrix *a = gsl_matrix_alloc(rows, columns);
  gsl_vector *tau = gsl_vector_alloc(rows < columns ? rows : columns);
  gsl_vector *norm = gsl_vector_alloc(columns);
  gsl_permutation *order = gsl_permutation_alloc(columns);
  unsigned long long state = 1;
  for (size_t i = 0; i < rows * columns; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    a->data[i] = (double)(state >> 33) / 2147483648.0 - 0.5;
  }
  int sign;
  gsl_linalg_QRPT_decomp(a, tau, order, &sign, norm);
  double logarithm = 0, sum = 0;
  for (size_t i = 0; i < tau->size; i++)
    logarithm += log(fabs(a->data[i * columns + i]));
  for (size_t i = 0; i < rows * columns; i++)
    sum += fabs(a->data[i]);
  printf("%zu x %zu: logarithm of the diagonal %.9g, sum %.9g, sign %d\n", rows, columns, logarithm,
         sum, sign);
}
