// A book of orders, each an object of its own: bids are looked at by price and amount, filled, and left alone again.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Order {
  long filled;
  long price;
  long amount;
  char customer[56];
  char address[56];
  char notes[40];
};

__attribute__((noinline)) long open_amount(const Order *order, long price) {
  return (order->amount - order->filled) * (order->price >= price);
}

__attribute__((noinline)) void fill(Order *order, long amount) {
  order->filled += amount;
}

int main() {
  std::vector<Order *> book;
  for (int i = 0; i < 20000; i++)
    book.push_back((Order *)calloc(1, sizeof(Order)));
  unsigned random = 1;
  long sum = 0;
  for (int i = 0; i < 2000000; i++) {
    random = random * 1664525 + 1013904223;
    Order *order = book[(random >> 8) % book.size()];
    if (long amount = open_amount(order, 0); amount < 10 && i % 8 == 0)
      fill(order, amount + 1);
    sum += (long)random;
  }
  std::printf("%ld\n", sum);
}
