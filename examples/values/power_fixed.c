// The same; squares are asked for first.
#include <stdio.h>

__attribute__((noinline)) double power(double x, unsigned exponent) {
  if (exponent == 2)
    return x * x;
  double result = 1;
  for (; exponent; exponent >>= 1, x *= x)
    if (exponent & 1)
      result *= x;
  return result;
}

int main(void) {
  double sum = 0;
  for (int i = 0; i < 200000000; i++)
    sum += power(i * 1e-6, i % 500 == 0 ? 11 : 2);
  printf("%g\n", sum);
}
