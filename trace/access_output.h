// Where the accesses go that a decoder finds.
#pragma once

#include "profile/access_stream.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace trace {

class AccessOutput {
public:
  using Accesses = std::vector<profile::Access>;
  // Uses the accesses, and empties the list.
  using Take = std::function<void(Accesses &)>;
  // Takes the iterations of a long loop as a whole, behind the accesses that were found before.
  // Empty: they are accesses like others.
  using TakeLoop = std::function<void(std::span<const profile::AccessRun> body, uint64_t times)>;

  // What is found is appended to `accesses`; where they become many, `take` is called meanwhile.
  AccessOutput(Accesses &accesses, const Take &take, const TakeLoop &take_loop)
      : accesses_(accesses), take_(take), take_loop_(take_loop) {}

  void add(const profile::Access &access) { accesses_.push_back(access); }
  // False: nothing was taken.
  bool take_if_many() {
    if (accesses_.size() <= kMany)
      return false;
    take();
    return true;
  }
  // An empty list for the body of a loop, of which one is used at a time.
  std::vector<profile::AccessRun> &new_body() {
    body_.clear();
    return body_;
  }
  // So many iterations, as a whole or each by itself.
  void loop(std::span<const profile::AccessRun> body, uint64_t times);
  // Accesses that have been taken.
  uint64_t taken() const { return taken_; }

private:
  void take() {
    taken_ += accesses_.size();
    take_(accesses_);
  }

  static constexpr size_t kMany = 1 << 16;
  static constexpr uint64_t kLongLoop =
      16; // iterations from which on it is worth being taken as a whole

  Accesses &accesses_;
  const Take &take_;
  const TakeLoop &take_loop_;
  uint64_t taken_ = 0;
  std::vector<profile::AccessRun> body_;
};

} // namespace trace
