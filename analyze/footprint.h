// Which memory was accessed at all: the lines of 64 bytes and the pages of 4 KiB that were touched,
// and those that were written.
#pragma once

#include "analyze/lines.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace analyze {

class Footprint {
public:
  Footprint();

  // Bytes from `address` on, at least one.
  void touch(uint64_t address, uint32_t bytes, bool is_write) {
    for_each_line(address, bytes, kLineShift, [&](uint64_t line) { touch_line(line, is_write); });
  }
  // So many accesses of as many bytes, each `step` beyond the one before, modulo 2^64.
  void touch_run(uint64_t address, uint32_t bytes, uint64_t step, uint64_t times, bool is_write);
  // All lines from `first` to `last`.
  void touch_lines(uint64_t first, uint64_t last, bool is_write);

  struct Size {
    uint64_t lines = 0, written_lines = 0, pages = 0, written_pages = 0;
  };
  Size size() const;

private:
  static constexpr unsigned kLinesShift = kPageShift - kLineShift; // of a page: 64, a bit each
  static constexpr size_t kRecent = 512;
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Page {
    uint64_t number = kNone;
    uint64_t touched[2] = {0, 0}; // by reads, by writes
  };
  void touch_line(uint64_t line, bool is_write) {
    const uint64_t page = line >> kLinesShift;
    Page &recent = recent_[page % kRecent];
    if (recent.number != page)
      replace(recent, page);
    const uint64_t bit = uint64_t{1} << (line & ((1 << kLinesShift) - 1));
    if (!(recent.touched[is_write] & bit)) // a store for each touch would wait for the one before
      recent.touched[is_write] |= bit;
  }
  void replace(Page &recent, uint64_t page);
  void keep(const Page &page);
  void grow();

  std::array<Page, kRecent> recent_; // what is not yet in pages_
  std::vector<Page> pages_;          // a hash table, at most half full
  size_t used_ = 0;
};

} // namespace analyze
