// The keys lie together, the rest elsewhere.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define RECORDS 65536
struct rest {
  char bytes[4152];
};
struct records {
  uint64_t key[RECORDS];
  struct rest rest[RECORDS];
};
__attribute__((noinline, noclone)) static uint64_t add(const struct records *records) {
  uint64_t sum = 0;
  for (int i = 0; i < RECORDS; i++)
    sum += records->key[i];
  return sum;
}
int main(void) {
  struct records *records = malloc(sizeof(struct records));
  for (int i = 0; i < RECORDS; i++)
    records->key[i] = i;
  uint64_t sum = 0;
  for (int i = 0; i < 2000; i++)
    records->key[i] += sum += add(records);
  printf("%llu\n", (unsigned long long)sum);
}
