#include <cstdio>
#include <cstdlib>

extern "C" int *make_numbers(int count);

int main() {
  int *numbers = make_numbers(1000);
  std::printf("%d\n", numbers[999]);
  std::free(numbers);
}
