#include "trace/compare.h"

#include "base/fail.h"

#include <filesystem>

namespace trace {

void Comparison::file(const TracedFile &file, std::span<const Group> groups,
                      std::span<const MovedFunction>) {
  files_.push_back(file);
  decoder_.add(file, groups);
}

void Comparison::mapping(const TracedMapping &mapping) {
  decoder_.add(mapping);
}

void Comparison::stream(const TracedStream &stream) {
  streams_[stream.number] = stream;
}

void Comparison::buffer(const TracedBuffer &buffer) {
  if (difference_)
    return;
  const TracedStream &stream = streams_[buffer.stream];
  Pair &pair = pairs_[stream.pair];
  auto &side = pair.sides[stream.is_of_singles()];
  auto take = [&](GroupDecoder::Accesses &decoded) {
    side.insert(side.end(), decoded.begin(), decoded.end());
    decoded.clear();
    compare(stream.pair, pair);
  };
  try {
    decoder_.decode(stream, buffer.data, 0, buffer.data.size(), decoded_, take);
  } catch (const base::Failure &failure) {
    difference_ = failure.what();
    return;
  }
  take(decoded_);
}

void Comparison::compare(uint32_t number, Pair &pair) {
  auto &[groups, singles] = pair.sides;
  while (!groups.empty() && !singles.empty()) {
    const profile::Access &a = groups.front(), &b = singles.front();
    if (decoder_.sites()[a.site].offset != decoder_.sites()[b.site].offset ||
        decoder_.sites()[a.site].file != decoder_.sites()[b.site].file || a.address != b.address ||
        a.size != b.size || a.is_write != b.is_write) {
      const TracedStream &stream = streams_[number];
      difference_ =
          fmt::format("thread {}, after {} accesses: {} was regenerated where {} was made",
                      stream.thread, compared_, describe(a), describe(b));
      return;
    }
    compared_++;
    groups.pop_front();
    singles.pop_front();
  }
}

void Comparison::end(const TraceEnd &) {
  for (const auto &[number, pair] : pairs_)
    unpaired_ += pair.sides[0].size() + pair.sides[1].size();
}

std::string Comparison::describe(const profile::Access &access) const {
  const profile::AccessSite &site = decoder_.sites()[access.site];
  std::string name = "?";
  for (const TracedFile &file : files_)
    if (file.number == site.file)
      name = std::filesystem::path(file.path).filename().string();
  return fmt::format("a {} of {} bytes at {:#x} by {:#x} of {}", access.is_write ? "write" : "read",
                     access.size, access.address, site.offset, name);
}

} // namespace trace
