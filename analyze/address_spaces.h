// Keeps the memory of one process apart from that of another at the same address.
//
// The first process keeps its addresses; those of others carry a number in bits that no address of
// a program uses. Memory that processes share is taken to be of each.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace analyze {

class AddressSpaces {
public:
  // To be added to the addresses of a process.
  uint64_t of(uint32_t process) {
    if (process == last_process_ && has_last_)
      return last_;
    last_ =
        uint64_t{
            numbers_.try_emplace(process, static_cast<uint32_t>(numbers_.size())).first->second}
        << 48;
    last_process_ = process;
    has_last_ = true;
    return last_;
  }

private:
  std::unordered_map<uint32_t, uint32_t> numbers_;
  uint32_t last_process_ = 0;
  bool has_last_ = false;
  uint64_t last_ = 0;
};

} // namespace analyze
