// A list of 40,000 objects of 88 bytes, in the order of their allocation, walked four thousand
// times: it is as fast as its objects lie at one distance.
#include <stdio.h>
#include <stdlib.h>

struct object {
  struct object *next;
  long rest[10];
};

int main(void) {
  struct object *first = NULL, **end = &first;
  for (int i = 0; i < 40000; i++, end = &(*end)->next) {
    *end = malloc(sizeof(struct object));
    (*end)->next = NULL;
  }
  long steps = 0;
  for (int round = 0; round < 4000; round++) {
    for (struct object *o = first; o; o = o->next)
      steps++;
    __asm__ volatile("" ::: "memory");
  }
  printf("%ld\n", steps);
}
