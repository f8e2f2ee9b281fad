// Tells contents of files apart, where a build id cannot: not every file has one, and `strip` keeps it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace image {

// 128 bits as 32 hexadecimal digits (XXH3). Not for what somebody may forge.
std::string content_hash(std::span<const std::byte> bytes);

} // namespace image
