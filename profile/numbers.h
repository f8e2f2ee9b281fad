// The numbers of abi/lines.h (LEB128) in records.
#pragma once

#include "abi/lines.h"
#include "base/byte_reader.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace profile {

// Throws Failure for a number of more than 64 bits, or one that is cut short.
inline uint64_t read_number(base::ByteReader &reader) {
  const auto rest = reader.rest();
  const auto *from = reinterpret_cast<const uint8_t *>(rest.data());
  uint64_t value = 0;
  const uint8_t *after = assay_get_number(from, from + rest.size(), &value);
  if (!after)
    base::fail("a number of more than 64 bits, or cut short");
  reader.skip(static_cast<uint64_t>(after - from));
  return value;
}

inline void put_number(std::vector<std::byte> &to, uint64_t n) {
  uint8_t bytes[ASSAY_NUMBER_BYTES];
  auto raw = std::as_bytes(std::span<uint8_t>(bytes, assay_put_number(bytes, n)));
  to.insert(to.end(), raw.begin(), raw.end());
}

} // namespace profile
