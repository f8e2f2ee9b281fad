// From an address to bytes of the file.
//
// The problem: everything that is said of code is said in addresses, and hostile files say it of
// addresses where nothing is. The idea: one place that turns an address into a span that is wholly
// within both its segment and the file, or into an empty one; all other readers ask here and check
// only for emptiness.
//
// Sections were refused as the way to bytes: the loader does not look at them, files may lack them,
// and two sections may claim the same address.

#include "image/segments.h"

#include <algorithm>

namespace image {

const Segment *Segments::at(uint64_t address) const {
  auto after =
      std::upper_bound(all_.begin(), all_.end(), address,
                       [](uint64_t wanted, const Segment &each) { return wanted < each.address; });
  if (after == all_.begin())
    return nullptr;
  const Segment &segment = *std::prev(after);
  return address - segment.address < segment.size ? &segment : nullptr;
}

std::span<const std::byte> Segments::bytes_from(uint64_t address) const {
  const Segment *segment = at(address);
  if (!segment || address - segment->address >= segment->file_size)
    return {};
  uint64_t skipped = address - segment->address;
  return file_.subspan(segment->file_offset + skipped, segment->file_size - skipped);
}

std::span<const std::byte> Segments::bytes(uint64_t address, uint64_t size) const {
  std::span<const std::byte> all = bytes_from(address);
  return size <= all.size() ? all.first(size) : std::span<const std::byte>();
}

} // namespace image
