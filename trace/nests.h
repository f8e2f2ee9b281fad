// Loops in a stream of accesses: what is made again and again at addresses that go up or down
// evenly, and loops of such loops.
//
// Source: Ketterlin, Clauss: Prediction and trace compression of data access addresses through
// nested loop recognition (CGO 2008).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trace {

// An access, or a loop.
struct Nest {
  uint64_t site = 0;    // whatever tells instructions apart
  uint64_t address = 0; // in the first iteration of all loops around it
  uint16_t size = 0;
  char kind = 'L';
  uint64_t count = 0;     // of a loop: iterations; 0: an access
  std::vector<Nest> body; // of a loop
  std::vector<int64_t>
      strides; // of a loop: for each access of the body, also of loops in it, how far it goes in each iteration

  bool is_loop() const { return count != 0; }
};

class NestFolder {
public:
  using Take = std::function<void(const Nest &)>;
  explicit NestFolder(Take take) : take_(std::move(take)) {}

  void push(Nest access);
  // Gives all that it still holds.
  void flush();

private:
  bool grow();
  bool fold();
  void hold(Nest nest);
  void drop(size_t from);

  Take take_;
  std::vector<Nest> held_; // the last ones, of which more may come
  // Of each that is held, so that a search passes over few lines of the cache.
  std::vector<uint64_t> shapes_; // the same where two are alike, nearly always another where not
  std::vector<uint32_t> body_sizes_; // 0: an access
};

} // namespace trace
