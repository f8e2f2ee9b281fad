// The nodes lie in the order of the list: the processor fetches the next ones itself.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define NODES (1 << 20)
struct node {
  struct node *next;
  uint64_t key;
  char rest[48];
};
__attribute__((noinline, noclone)) static uint64_t follow(const struct node *node) {
  uint64_t sum = 0;
  for (; node; node = node->next)
    sum = sum * 31 + node->key;
  return sum;
}
int main(void) {
  struct node *nodes = malloc(sizeof(struct node) * NODES);
  for (uint32_t i = 0; i < NODES; i++) {
    nodes[i].key = i;
    nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : NULL;
  }
  uint64_t sum = 0;
  for (int i = 0; i < 6; i++)
    sum = sum * 7 + follow(nodes);
  printf("%llu\n", (unsigned long long)sum);
}
