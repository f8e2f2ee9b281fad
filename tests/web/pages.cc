// A program with something to show in each view: several types, sites, phases, structs and a child.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

struct Order { // whose note nobody writes
  Order(int64_t number, int32_t price, int32_t count)
      : number(number), price(price), count(count) {}
  int64_t number;
  char note[296];
  int32_t price;
  std::atomic<int32_t> count;
};
struct Node {
  Node *next;
  int64_t key;
  char rest[48];
};

[[gnu::noinline]] int64_t sum(const std::vector<std::unique_ptr<Order>> &orders) {
  int64_t sum = 0;
  for (const auto &order : orders)
    sum += (int64_t)order->price * order->count;
  return sum;
}
[[gnu::noinline]] int64_t walk(const Node *node) {
  int64_t sum = 0;
  for (; node; node = node->next)
    sum += node->key;
  return sum;
}
[[gnu::noinline]] int64_t temporary(int size) {
  std::vector<int64_t> numbers(size, 3);
  int64_t sum = 0;
  for (int64_t number : numbers)
    sum += number;
  return sum;
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 && !strcmp(argv[1], "short") ? 2 : 100;
  std::vector<std::unique_ptr<Order>> orders;
  for (int i = 0; i < 20000; i++)
    orders.push_back(std::make_unique<Order>(i, i % 100, i % 7));
  int64_t total = 0;
  for (int i = 0; i < rounds; i++)
    total += sum(orders);
  Node *list = nullptr;
  for (int i = 0; i < 2000; i++)
    list = new Node{list, i, ""};
  for (int i = 0; i < rounds; i++)
    total += walk(list) + temporary(i % 50 + 1);
  if (fork() == 0)
    exit(temporary(100) != 300);
  wait(nullptr);
  printf("%lld\n", (long long)total);
}
