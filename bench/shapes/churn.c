// Ten million short-lived structs, each used a little.
#include <stdio.h>
#include <stdlib.h>

struct small {
  int key, value;
  struct small *next;
  long rest[3];
};

int main(void) {
  struct small *keep[64] = {0};
  long sum = 0;
  for (int i = 0; i < 10000000; i++) {
    struct small *s = malloc(sizeof *s);
    s->key = i;
    s->value = i + 1;
    s->next = keep[i % 64];
    if (s->next) {
      sum += s->next->key;
      free(s->next);
    }
    keep[i % 64] = s;
  }
  printf("%ld\n", sum);
  return 0;
}
