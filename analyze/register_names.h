// The general registers as assemblers call them.
#pragma once

#include <optional>
#include <string_view>

namespace analyze {

// "eax" of register 0 with 4 bytes: numbers are those of machine code, bytes 1, 2, 4 or 8.
const char *register_name(unsigned number, unsigned bytes);
// "ah" of register 0: of the second byte of one of the four that have one.
const char *second_byte_name(unsigned number);

// The number of a register by any of its names; nothing of what is none.
std::optional<unsigned> register_number(std::string_view name);

} // namespace analyze
