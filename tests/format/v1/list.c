// The program that wrote list.assay, at -O1: a list of 100 nodes of which 60 are freed again, and
// one buffer that grows.
#include <stdlib.h>
#include <string.h>

struct node {
  struct node *next;
  long key;
};

int main(void) {
  volatile struct node *list = NULL;
  for (int i = 0; i < 100; i++) {
    volatile struct node *n = (struct node *)malloc(sizeof(struct node));
    n->next = (struct node *)list;
    n->key = i;
    list = n;
  }
  for (int i = 0; i < 60; i++) {
    volatile struct node *next = list->next;
    free((void *)list);
    list = next;
  }
  char *volatile buffer = malloc(100);
  memset(buffer, 1, 100);
  buffer = realloc(buffer, 1000);
  free(buffer);
  return list->key != 39;
}
