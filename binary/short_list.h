// A list that is short almost always: N of its items lie in the object itself, more of them in
// memory of their own. Lists of a graph's edges are such, and there are two for each block of a
// program: as vectors they were much of the malloc and free that took a fifth of the analysis of
// small routines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>

namespace binary {

template <class T, uint32_t N> class ShortList {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  using value_type = T;

  ShortList() noexcept {}
  ShortList(std::initializer_list<T> items) : ShortList(items.begin(), items.end()) {}
  template <std::forward_iterator Iterator> ShortList(Iterator begin, Iterator end) {
    reserve(static_cast<uint32_t>(std::distance(begin, end)));
    for (; begin != end; ++begin)
      push_back(*begin);
  }
  ShortList(const ShortList &other) : ShortList(other.begin(), other.end()) {}
  ShortList(ShortList &&other) noexcept { take(other); }
  ShortList &operator=(const ShortList &other) {
    if (this != &other)
      *this = ShortList(other);
    return *this;
  }
  ShortList &operator=(ShortList &&other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~ShortList() { release(); }

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T *begin() { return is_apart() ? apart_ : within_; }
  T *end() { return begin() + size_; }
  const T *begin() const { return is_apart() ? apart_ : within_; }
  const T *end() const { return begin() + size_; }
  T &operator[](size_t at) { return begin()[at]; }
  const T &operator[](size_t at) const { return begin()[at]; }
  // Of a list that is not empty.
  const T &front() const { return *begin(); }
  const T &back() const { return *(end() - 1); }

  void push_back(T item) {
    if (size_ == capacity_)
      reserve(2 * capacity_);
    begin()[size_++] = item;
  }
  void reserve(uint32_t capacity) {
    if (capacity <= capacity_)
      return;
    T *larger = new T[capacity];
    std::copy(begin(), end(), larger);
    if (is_apart())
      delete[] apart_;
    apart_ = larger;
    capacity_ = capacity;
  }

  bool operator==(const ShortList &other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

private:
  bool is_apart() const { return capacity_ > N; }
  void release() {
    if (is_apart())
      delete[] apart_;
  }
  // Takes what it has, and leaves it empty.
  void take(ShortList &other) {
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (is_apart())
      apart_ = other.apart_;
    else
      std::copy(other.within_, other.within_ + size_, within_);
    other.size_ = 0;
    other.capacity_ = N;
  }

  union {
    T within_[N];
    T *apart_;
  };
  uint32_t size_ = 0, capacity_ = N;
};

// Numbers of blocks or nodes.
using NodeList = ShortList<uint32_t, 2>;
static_assert(sizeof(NodeList) == 16);

} // namespace binary
