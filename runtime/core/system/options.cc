// The syntax of the sanitizers: ASSAY_OPTIONS=name=value:name=value, where a value that holds a colon stands in quotes.
// Text options keep pointing into the environment, which outlives us.

#include "runtime/core/system/options.h"

#include <sys/utsname.h>

#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

bool is_quote(char c) {
  return c == '\'' || c == '"';
}

const char *find_colon(const char *from) {
  while (*from && *from != ':')
    from++;
  return from;
}

// One name=value. What follows it begins with a colon, or is the end.
struct Given {
  OptionText name, value;
  const char *behind;
  bool is_quoted_whole; // or not quoted
};

Given next_given(const char *from) {
  const char *end = find_colon(from), *equals = from;
  while (equals < end && *equals != '=')
    equals++;
  const char *value = equals < end ? equals + 1 : end;
  if (!is_quote(*value))
    return {{from, equals}, {value, end}, end, true};
  const char *close = value + 1;
  while (*close && *close != *value)
    close++;
  const char *behind = *close ? find_colon(close) : close;
  return {{from, equals}, {value + 1, close}, behind, *close && behind == close + 1};
}

bool read_number(const char *value, const char *end, uint64_t &out) {
  uint64_t n = 0;
  const char *p = value;
  for (; p < end && *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
      return false;
  if (p == value)
    return false;
  if (p + 1 == end) {
    int shift = *p == 'k' ? 10 : *p == 'm' ? 20 : *p == 'g' ? 30 : 0;
    if (shift == 0 || n > (UINT64_MAX >> shift))
      return false;
    n <<= shift;
    p++;
  }
  out = n;
  return p == end;
}

bool set(uint64_t &field, OptionText value) {
  return read_number(value.begin, value.end, field);
}
bool set(bool &field, OptionText value) {
  uint64_t n;
  if (!read_number(value.begin, value.end, n) || n > 1)
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
    const Given next = next_given(p);
    bool known = false, good = false;
#define ASSAY_OPTION(type, option, default, help)                                                  \
  if (next.name.is(#option)) {                                                                     \
    known = true;                                                                                  \
    good = next.is_quoted_whole && set(options.option, next.value);                                \
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
