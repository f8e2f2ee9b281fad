// Items are scanned by key alone, often enough for sampled windows: 300 items, 20,000 rounds.
#include <stdlib.h>
struct item {
  long key;
  char name[72];
  long count;
};
int main(void) {
  struct item *items = calloc(300, sizeof *items);
  long sum = 0;
  for (int round = 0; round < 20000; round++) {
    for (int i = 0; i < 300; i++)
      sum += items[i].key;
    items[round % 300].count++;
    __asm__ volatile("" : : "r"(items) : "memory");
  }
  return sum != 0;
}
