// The lines that were touched last, in order: the top of the stack of all lines.
//
// Most touches are of lines that were touched a moment ago, and need no more than this list, which
// is searched from its begin.
#pragma once

#include <cstdint>
#include <cstring>

namespace analyze {

class RecentLines {
public:
  static constexpr unsigned kSize = 16;
  static constexpr uint64_t kNoLine = UINT64_MAX;

  // How many lines were touched since this line was; kSize if it is not among the last ones. It is
  // the first one from now on, and `dropped`, if there is no room any more, the one that is not in
  // the list any longer; else kNoLine.
  unsigned touch(uint64_t line, uint64_t &dropped) {
    dropped = kNoLine;
    if (lines_[0] == line && size_)
      return 0;
    for (unsigned i = 1; i < size_; i++)
      if (lines_[i] == line) {
        std::memmove(lines_ + 1, lines_, i * sizeof *lines_);
        lines_[0] = line;
        return i;
      }
    if (size_ == kSize)
      dropped = lines_[kSize - 1];
    else
      size_++;
    std::memmove(lines_ + 1, lines_, (size_ - 1) * sizeof *lines_);
    lines_[0] = line;
    return kSize;
  }

  void remove(uint64_t line) {
    for (unsigned i = 0; i < size_; i++)
      if (lines_[i] == line) {
        size_--;
        std::memmove(lines_ + i, lines_ + i + 1, (size_ - i) * sizeof *lines_);
        return;
      }
  }

  unsigned size() const { return size_; }

private:
  uint64_t lines_[kSize] = {};
  unsigned size_ = 0;
};

} // namespace analyze
