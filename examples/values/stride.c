// Adds one field of large records: each load goes to another page.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define RECORDS 65536
struct record {
  uint64_t key;
  char rest[4152];
};
__attribute__((noinline, noclone)) static uint64_t add(const struct record *records) {
  uint64_t sum = 0;
  for (int i = 0; i < RECORDS; i++)
    sum += records[i].key;
  return sum;
}
int main(void) {
  struct record *records = malloc(sizeof(struct record) * RECORDS);
  for (int i = 0; i < RECORDS; i++)
    records[i].key = i;
  uint64_t sum = 0;
  for (int i = 0; i < 2000; i++)
    records[i].key += sum += add(records);
  printf("%llu\n", (unsigned long long)sum);
}
