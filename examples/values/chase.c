// Follows a list whose nodes lie in another order than it has: where the next one lies is known when this one has come.
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
  uint32_t at = 0; // these steps come to each node once
  for (uint32_t i = 0; i < NODES; i++) {
    const uint32_t next = (at * 5 + 1237) % NODES;
    nodes[at].key = i;
    nodes[at].next = i + 1 < NODES ? &nodes[next] : NULL;
    at = next;
  }
  uint64_t sum = 0;
  for (int i = 0; i < 6; i++)
    sum = sum * 7 + follow(nodes);
  printf("%llu\n", (unsigned long long)sum);
}
