#include <stdlib.h>

int *make_numbers(int count) {
  int *numbers = malloc(count * sizeof *numbers);
  for (int i = 0; i < count; i++)
    numbers[i] = i;
  return numbers;
}
