// orders.cc after what `assay heap` said of it: addresses lie elsewhere, the steps need no memory.
#include <cstdint>
#include <cstdio>
#include <vector>

struct Order {
  uint64_t id;
  uint64_t cents;
};

struct Address {
  char text[240]; // for the parcel; made when it is sent
};

static std::vector<Order> read_orders(int count) {
  std::vector<Order> orders;
  orders.reserve(count);
  for (int i = 0; i < count; i++)
    orders.push_back({static_cast<uint64_t>(i), static_cast<uint64_t>(i * 7919 % 10000)});
  return orders;
}

static uint64_t discount(const Order &order) {
  return order.cents / (10 + order.id % 7);
}

int main() {
  std::vector<Order> orders = read_orders(20000);
  uint64_t cents = 0;
  for (uint64_t day = 0; day < 50; day++)
    for (const Order &order : orders)
      cents += order.id % 10 == day % 10 ? order.cents - discount(order) : order.cents;
  std::printf("%llu\n", static_cast<unsigned long long>(cents));
}
