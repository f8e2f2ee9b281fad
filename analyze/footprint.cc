// A page has as many lines as a word has bits. Pages come again and again, so those of late are
// gathered in a small table without collisions, and join the large one when another page takes
// their place.

#include "analyze/footprint.h"

#include <bit>

namespace analyze {
namespace {

size_t place_of(uint64_t page, size_t size) {
  return static_cast<size_t>((page * 0x9e3779b97f4a7c15) >> 20) & (size - 1);
}

} // namespace

Footprint::Footprint() : pages_(1 << 12) {}

void Footprint::replace(Page &recent, uint64_t page) {
  if (recent.number != kNone)
    keep(recent);
  recent = Page{};
  recent.number = page;
}

void Footprint::keep(const Page &page) {
  for (size_t at = place_of(page.number, pages_.size());; at = (at + 1) & (pages_.size() - 1)) {
    Page &kept = pages_[at];
    if (kept.number == page.number) {
      kept.touched[0] |= page.touched[0];
      kept.touched[1] |= page.touched[1];
      return;
    }
    if (kept.number == kNone) {
      kept = page;
      if (++used_ * 2 > pages_.size())
        grow();
      return;
    }
  }
}

void Footprint::grow() {
  std::vector<Page> old(pages_.size() * 2);
  old.swap(pages_);
  used_ = 0;
  for (const Page &page : old)
    if (page.number != kNone)
      keep(page);
}

void Footprint::touch_lines(uint64_t first, uint64_t last, bool is_write) {
  constexpr uint64_t kLast = (1 << kLinesShift) - 1;
  for (uint64_t line = first; line <= last;) {
    const uint64_t page = line >> kLinesShift;
    const uint64_t end = page == last >> kLinesShift ? last & kLast : kLast;
    Page &recent = recent_[page % kRecent];
    if (recent.number != page)
      replace(recent, page);
    recent.touched[is_write] |= (~uint64_t{0} << (line & kLast)) & (~uint64_t{0} >> (kLast - end));
    line = (page + 1) << kLinesShift;
  }
}

// If no step is longer than a line, none is left out between the first and the last.
void Footprint::touch_run(uint64_t address, uint32_t bytes, uint64_t step, uint64_t times,
                          bool is_write) {
  constexpr uint64_t kLine = 1 << kLineShift;
  const uint64_t last = address + (times - 1) * step;
  if (step <= kLine)
    touch_lines(address >> kLineShift, (last + bytes - 1) >> kLineShift, is_write);
  else if (0 - step <= kLine)
    touch_lines(last >> kLineShift, (address + bytes - 1) >> kLineShift, is_write);
  else
    for (uint64_t i = 0; i < times; i++)
      touch(address + i * step, bytes, is_write);
}

Footprint::Size Footprint::size() const {
  Footprint all = *this;
  for (Page &recent : all.recent_)
    if (recent.number != kNone)
      all.keep(recent);
  Size size;
  for (const Page &page : all.pages_) {
    if (page.number == kNone)
      continue;
    size.lines += static_cast<uint64_t>(std::popcount(page.touched[0] | page.touched[1]));
    size.written_lines += static_cast<uint64_t>(std::popcount(page.touched[1]));
    size.pages++;
    size.written_pages += page.touched[1] != 0;
  }
  return size;
}

} // namespace analyze
