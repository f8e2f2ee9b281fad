// How much words are alike: for messages that say what was probably meant.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

// Insertions, deletions and replacements of bytes that make one word of the other.
size_t distance(const std::string &a, const std::string &b);

} // namespace cli
