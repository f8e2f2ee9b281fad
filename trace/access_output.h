// Where the accesses go that a decoder finds.
#pragma once

#include "profile/access_stream.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace trace {

// Hands them on in batches that stay in the cache. One is made for many parts of streams: it keeps its memory.
class AccessOutput {
public:
  // Never empty.
  using Take = std::function<void(std::span<const profile::Access>)>;
  // Takes the iterations of a long loop as a whole, behind the accesses that were found before.
  // Empty: they are accesses like others.
  using TakeLoop = std::function<void(std::span<const profile::AccessRun> body, uint64_t times)>;

  explicit AccessOutput(Take take, TakeLoop take_loop = {});
  AccessOutput(const AccessOutput &) = delete;
  AccessOutput &operator=(const AccessOutput &) = delete;

  static constexpr size_t kRoom = 4096;

  void add(const profile::Access &access) {
    *room_for(1) = access;
    advance(1);
  }
  // Room for so many, kRoom at most. They are added by advance().
  profile::Access *room_for(size_t accesses) {
    if (kRoom - count_ < accesses)
      flush();
    return &batch_[count_];
  }
  void advance(size_t accesses) { count_ += accesses; }
  // Hands on what was added.
  void flush();
  // An empty list for the body of a loop, of which one is used at a time.
  std::vector<profile::AccessRun> &new_body() {
    body_.clear();
    return body_;
  }
  // So many iterations, as a whole or each by itself.
  void loop(std::span<const profile::AccessRun> body, uint64_t times);
  // Accesses that came so far.
  uint64_t taken() const { return taken_ + count_; }

private:
  static constexpr uint64_t kLongLoop =
      16; // iterations from which on it is worth being taken as a whole

  const Take take_;
  const TakeLoop take_loop_;
  const std::unique_ptr<profile::Access[]> batch_;
  size_t count_ = 0; // in the batch
  uint64_t taken_ = 0;
  std::vector<profile::AccessRun> body_;
};

} // namespace trace
