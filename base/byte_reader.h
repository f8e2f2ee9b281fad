// Reading bytes that somebody else wrote. Every read is checked against what is left; a read that
// does not fit throws Failure naming the source and the offset, and leaves the reader where it was.
//
// Scalars and structs are copied out, so alignment does not matter; byte order is little-endian,
// the only one that Assay runs on.
#pragma once

#include "base/fail.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace base {

class ByteReader {
public:
  // `source` names the bytes in errors; `origin` is the offset of bytes[0] within the source.
  // Neither the bytes nor the name is copied.
  explicit ByteReader(std::span<const std::byte> bytes, std::string_view source = "data",
                      uint64_t origin = 0)
      : bytes_(bytes), source_(source), origin_(origin) {}

  size_t left() const { return bytes_.size() - position_; }
  bool at_end() const { return left() == 0; }
  uint64_t offset() const { return origin_ + position_; }

  template <class T> T read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::span<const std::byte> bytes(uint64_t size) {
    if (size > left())
      fail("{}: {} bytes wanted at offset {}, but only {} are left", source_, size, offset(),
           left());
    auto result = bytes_.subspan(position_, size);
    position_ += size;
    return result;
  }

  void skip(uint64_t size) { bytes(size); }

  // What has not been read.
  std::span<const std::byte> rest() const { return bytes_.subspan(position_); }

  // Up to and without a zero byte, which must be there; the reader goes past it. The view points
  // into the bytes.
  std::string_view zero_terminated() {
    const char *start = reinterpret_cast<const char *>(bytes_.data()) + position_;
    const void *end = left() ? std::memchr(start, 0, left()) : nullptr;
    if (!end)
      fail("{}: the string at offset {} has no end", source_, offset());
    std::string_view result(start, static_cast<const char *>(end) - start);
    position_ += result.size() + 1;
    return result;
  }

  // The next `size` bytes as text.
  std::string_view text(uint64_t size) {
    auto raw = bytes(size);
    return {reinterpret_cast<const char *>(raw.data()), raw.size()};
  }

private:
  std::span<const std::byte> bytes_;
  std::string_view source_;
  uint64_t origin_;
  size_t position_ = 0;
};

} // namespace base
