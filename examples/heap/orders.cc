// Fifty days of sums over 20,000 orders. What wastes memory here? README.md beside this file tells.
#include <cstdint>
#include <cstdio>
#include <vector>

struct Order {
  uint64_t id;
  uint64_t cents;
  char address[240]; // for the parcel
};

static std::vector<Order *> read_orders(int count) {
  std::vector<Order *> orders;
  orders.reserve(count);
  for (int i = 0; i < count; i++) {
    Order *order = new Order;
    order->id = i;
    order->cents = i * 7919 % 10000;
    orders.push_back(order);
  }
  return orders;
}

static uint64_t discount(const Order &order) {
  std::vector<uint64_t> steps(order.id % 3 + 1);
  for (uint64_t &step : steps)
    step = order.cents / (10 + order.id % 7);
  return steps.back();
}

int main() {
  std::vector<Order *> orders = read_orders(20000);
  uint64_t cents = 0;
  for (uint64_t day = 0; day < 50; day++)
    for (Order *order : orders)
      cents += order->id % 10 == day % 10 ? order->cents - discount(*order) : order->cents;
  std::printf("%llu\n", static_cast<unsigned long long>(cents));
}
