// Quantities as people read and type them. Formatting keeps three significant digits ("1.50 MiB",
// "12.3 ms"); exact numbers belong in JSON. Parsing takes a number with a unit and throws Failure
// on anything else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace base {

std::string format_bytes(double bytes);    // 0 B, 999 B, 1.50 KiB, 3.00 GiB
std::string format_duration_us(double us); // 0 us, 1.20 ms, 3.40 s, 5.0 min, 2.0 h
std::string format_count(double count);    // 0, 999, 1.20 k, 3.40 M, 5.60 G
std::string format_share(double share);    // 0.123 -> 12 %; 0 % and 100 % are exactly that

// A number and what it counts, which is `one` where the number reads "1", and else `many`, or `one`
// with an s if that is empty: 1 thread, 3 threads, 1.20 k threads. The others are for numbers that
// are formatted in another way, and for those of which each digit is shown.
std::string format_counted(double count, std::string_view one, std::string_view many = {});
std::string with_noun(std::string_view number, std::string_view one, std::string_view many = {});
std::string with_noun(uint64_t number, std::string_view one, std::string_view many = {});

// `option` is the option that the text was given to: the Failure begins with it.
uint64_t parse_bytes(std::string_view text,
                     std::string_view option = {}); // 10, 10B, 4KiB, 1GiB; 4kB and 1GB are of 1000
uint64_t parse_duration_us(std::string_view text,
                           std::string_view option = {}); // 10us, 5ms, 2s, 3min, 1h
uint64_t parse_count(std::string_view text,
                     std::string_view option = {}); // 10, 4k, 2M, 1G (powers of 1000)
double parse_share(std::string_view text,
                   std::string_view option = {}); // 5%, 0.1%: 0.05, 0.001; at most 100%
double parse_growth(std::string_view text, std::string_view option = {}); // 5%, 200%: 0.05, 2

// Any of these: bytes, microseconds, 1 for 100%; and what kind of unit it was written with.
enum class UnitKind { kNone, kShare, kCount, kBytes, kTime };
struct Number {
  double value = 0;
  UnitKind unit = UnitKind::kNone;
};
Number parse_number(std::string_view text);

} // namespace base
