// A tree of a million nodes, four times, built by a recursive function with several call sites:
// each node has another call path.
#include <stdio.h>
#include <stdlib.h>

struct node {
  struct node *left, *right;
  long key;
};

__attribute__((noinline)) static struct node *build_tree(int levels, unsigned seed) {
  if (levels == 0)
    return NULL;
  struct node *n = malloc(sizeof *n);
  n->key = seed;
  unsigned next = seed * 1664525 + 1013904223;
  if (next >> 31) { // two orders, four call sites
    n->left = build_tree(levels - 1, next);
    n->right = build_tree(levels - 1, next + 1);
  } else {
    n->right = build_tree(levels - 1, next + 2);
    n->left = build_tree(levels - 1, next + 3);
  }
  return n;
}

static long sum(const struct node *n) {
  return n ? n->key + sum(n->left) - sum(n->right) : 0;
}

static void free_tree(struct node *n) {
  if (n) {
    free_tree(n->left);
    free_tree(n->right);
    free(n);
  }
}

int main(void) {
  for (unsigned round = 0; round < 4; round++) {
    struct node *root = build_tree(20, round);
    printf("%ld\n", sum(root));
    free_tree(root);
  }
}
