// The order that a user chooses by --sort.
#pragma once

#include "base/fail.h"

#include <span>
#include <string>

namespace base {

// That whose key it is, an empty key's the first one. Throws Failure listing the keys if it is none's.
template <class Order, class KeyOf>
const Order &chosen_order(std::span<const Order> orders, const std::string &key, KeyOf key_of) {
  std::string keys;
  for (const Order &order : orders) {
    if (key.empty() || key == key_of(order))
      return order;
    keys += (keys.empty() ? "" : ", ") + std::string(key_of(order));
  }
  fail("--sort {}: there is no such key; use one of {}", key, keys);
}
// Of orders that have it as their `key`.
template <class Order>
const Order &chosen_order(std::span<const Order> orders, const std::string &key) {
  return chosen_order(orders, key, [](const Order &order) { return order.key; });
}

} // namespace base
