// A short list against std::vector: whatever is done to both leaves the same in both, within the
// object, beyond it, and on the way.

#include "binary/short_list.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace {

template <class List> void do_as_a_vector() {
  using T = typename List::value_type;
  std::mt19937_64 random(7);
  std::vector<List> lists(8); // moves them as it grows
  std::vector<std::vector<T>> expected(8);
  for (unsigned turn = 0; turn < 20'000; turn++) {
    const size_t at = random() % lists.size(), other = random() % lists.size();
    const auto item = static_cast<T>(random());
    switch (random() % 8) {
    case 0:
      lists[at] = lists[other];
      expected[at] = expected[other];
      break;
    case 1:
      lists[at] = std::move(lists[other]);
      if (at != other) {
        expected[at] = std::exchange(expected[other], {});
        EXPECT_TRUE(lists[other].empty());
      }
      break;
    case 2:
      lists[at] = List(expected[other].begin(), expected[other].end());
      expected[at] = expected[other];
      break;
    case 3:
      if (lists.size() < 64) {
        lists.push_back(List{item, item});
        expected.push_back({item, item});
      } else {
        lists[at] = {};
        expected[at] = {};
      }
      break;
    case 4:
      if (!lists[at].empty())
        lists[at][item % lists[at].size()] = item, expected[at][item % expected[at].size()] = item;
      break;
    default: lists[at].push_back(item); expected[at].push_back(item);
    }
    for (size_t i : {at, other}) {
      ASSERT_EQ(std::vector<T>(lists[i].begin(), lists[i].end()), expected[i]) << turn;
      ASSERT_EQ(lists[i].empty(), expected[i].empty());
      if (!expected[i].empty()) {
        ASSERT_EQ(lists[i].front(), expected[i].front());
        ASSERT_EQ(lists[i].back(), expected[i].back());
      }
      ASSERT_EQ(lists[at] == lists[other], expected[at] == expected[other]);
    }
  }
}

TEST(ShortList, IsAVector) {
  do_as_a_vector<binary::NodeList>();
  do_as_a_vector<binary::ShortList<uint64_t, 2>>();
  do_as_a_vector<binary::ShortList<uint32_t, 1>>();
}

// An item of the list itself, when it must grow for it.
TEST(ShortList, TakesAnItemOfItsOwn) {
  binary::NodeList list{1, 2};
  list.push_back(list.front());
  list.push_back(list.back());
  list.push_back(list[1]);
  EXPECT_EQ(list, (binary::NodeList{1, 2, 1, 1, 2}));
}

} // namespace
