// Run-time options: abi/options.def as a struct, read once from ASSAY_OPTIONS.
#pragma once

#include <stdint.h>

#include "runtime/core/system/message.h"

namespace assay {

struct OptionTypes {
  using flag = bool;
  using number = uint64_t;
  using text = const char *;
};

struct Options {
#define ASSAY_OPTION(type, name, default, help) OptionTypes::type name = default;
#include "abi/options.def"
};

// Reads name=value:name=value; unknown names and bad values are said and skipped. The string must
// stay.
void parse_options(Options &options, const char *given);

// The options in force, in the same syntax.
void print_options(const Options &options, Text &out);

// The table of options, for help=1.
void print_option_help();

// A copy of a text value up to its end (':' or 0) with %p, %h and %b replaced.
void expand_pattern(const char *value, const char *program, Text &out);

} // namespace assay
