// Run-time options: abi/options.def as a struct, read once from ASSAY_OPTIONS.
#pragma once

#include <stdint.h>

#include "runtime/core/system/message.h"

namespace assay {

// The value of a text option, in the environment or in the program.
struct OptionText {
  const char *begin, *end;
  constexpr OptionText(const char *text) : begin(text), end(text) {
    while (*end)
      end++;
  }
  constexpr OptionText(const char *first, const char *behind) : begin(first), end(behind) {}
  bool empty() const { return begin == end; }
  bool is(const char *word) const {
    const size_t size = length_of(word);
    return (size_t)(end - begin) == size && equal(begin, word, size);
  }
};

struct OptionTypes {
  using flag = bool;
  using number = uint64_t;
  using text = OptionText;
};

struct Options {
#define ASSAY_OPTION(type, name, default, help) OptionTypes::type name = default;
#include "abi/options.def"
};

// Reads name=value:name=value, as sanitizers do: a value may stand in quotes, single or double, and hold a colon then.
// Unknown names and bad values are said and skipped. The string must stay.
void parse_options(Options &options, const char *given);

// The options in force, in the same syntax.
void print_options(const Options &options, Text &out);

// The table of options, for help=1.
void print_option_help();

// A copy of a text value with %p, %h and %b replaced.
void expand_pattern(OptionText value, const char *program, Text &out);

} // namespace assay
