// The syntax of the sanitizers: ASSAY_OPTIONS=name=value:name=value, where a value that holds a colon stands in quotes.
// Text options keep pointing into the environment, which outlives us.

#include "runtime/core/system/options.h"

#include <sys/utsname.h>

#include "abi/given_options.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

bool set(uint64_t &field, OptionText value) {
  return assay_read_number(value.begin, value.end, &field);
}
bool set(bool &field, OptionText value) {
  uint64_t n;
  if (!assay_read_number(value.begin, value.end, &n) || n > 1)
    return false;
  field = n != 0;
  return true;
}
bool set(OptionText &field, OptionText value) {
  field = value;
  return true;
}

void print(Text &out, uint64_t value) {
  out.add_number(value);
}
void print(Text &out, bool value) {
  out.add_number(value);
}
void print(Text &out, OptionText value) {
  bool has_colon = false, has_quote = false;
  for (const char *p = value.begin; p < value.end; p++) {
    has_colon |= *p == ':';
    has_quote |= *p == '\'';
  }
  const char *quote = !has_colon ? "" : has_quote ? "\"" : "'";
  out.add(quote).add(value.begin, (size_t)(value.end - value.begin)).add(quote);
}

} // namespace

void parse_options(Options &options, const char *given) {
  for (const char *p = given; p && *p;) {
    const AssayGivenOption next = assay_next_option(p);
    const OptionText name = {next.name, next.name_end}, value = {next.value, next.value_end};
    bool known = false, good = false;
#define ASSAY_OPTION(type, option, default, help)                                                  \
  if (name.is(#option)) {                                                                          \
    known = true;                                                                                  \
    good = next.is_quoted_whole && set(options.option, value);                                     \
  }
#include "abi/options.def"
    if (!good && next.behind > p) {
      Text text;
      text.add(known ? "bad value in option '" : "unknown option '");
      text.add(p, (size_t)(next.behind - p)).add("' ignored; ASSAY_OPTIONS=help=1 lists them");
      say(text.c_str());
    }
    p = *next.behind ? next.behind + 1 : next.behind;
  }
}

void print_options(const Options &options, Text &out) {
  const char *separator = "";
#define ASSAY_OPTION(type, name, default, help)                                                    \
  out.add(separator).add(#name "=");                                                               \
  print(out, options.name);                                                                        \
  separator = ":";
#include "abi/options.def"
}

void print_option_help() {
  say("options, given as ASSAY_OPTIONS=name=value:name=value");
#define ASSAY_OPTION(type, name, default, help)                                                    \
  say("  " #name " (" #type ", default " #default "): " help);
#include "abi/options.def"
}

void expand_pattern(OptionText value, const char *program, Text &out) {
  for (const char *p = value.begin, *end = value.end; p < end; p++) {
    if (*p != '%' || p + 1 == end) {
      out.add(*p);
      continue;
    }
    switch (*++p) {
    case 'p': out.add_number(sys::process_id()); break;
    case 'b': out.add(program); break;
    case 'h': {
      utsname names;
      sys::call(SYS_uname, (long)&names);
      out.add(names.nodename);
      break;
    }
    case '%': out.add('%'); break;
    default: out.add('%').add(*p);
    }
  }
}

} // namespace assay
