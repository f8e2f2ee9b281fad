// The syntax of the sanitizers: ASSAY_OPTIONS=name=value:name=value. Values cannot hold ':'. Text
// options keep pointing into the environment, which outlives us.

#include "runtime/core/system/options.h"

#include <sys/utsname.h>

#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

const char *end_of_value(const char *value) {
  while (*value && *value != ':')
    value++;
  return value;
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

bool set(uint64_t &field, const char *value, const char *end) {
  return read_number(value, end, field);
}
bool set(bool &field, const char *value, const char *end) {
  uint64_t n;
  if (!read_number(value, end, n) || n > 1)
    return false;
  field = n != 0;
  return true;
}
bool set(const char *&field, const char *value, const char *) {
  field = value;
  return true;
}

void print(Text &out, uint64_t value) {
  out.add_number(value);
}
void print(Text &out, bool value) {
  out.add_number(value);
}
void print(Text &out, const char *value) {
  out.add(value, (size_t)(end_of_value(value) - value));
}

} // namespace

void parse_options(Options &options, const char *given) {
  for (const char *p = given; p && *p;) {
    const char *name = p, *end = end_of_value(p), *equals = name;
    while (equals < end && *equals != '=')
      equals++;
    const char *value = equals < end ? equals + 1 : end;
    auto is = [&](const char *known) {
      size_t n = length_of(known);
      return (size_t)(equals - name) == n && equal(known, name, n);
    };
    bool known = false, good = false;
    if (*name == '"' || *name == '\'' || (value < end && (*value == '"' || *value == '\'')))
      say("quotes in ASSAY_OPTIONS are taken as part of a name or value; leave them out");
#define ASSAY_OPTION(type, option, default, help)                                                  \
  if (is(#option)) {                                                                               \
    known = true;                                                                                  \
    good = set(options.option, value, end);                                                        \
  }
#include "abi/options.def"
    if (!good && end > name) {
      Text text;
      text.add(known ? "bad value in option '" : "unknown option '");
      text.add(name, (size_t)(end - name)).add("' ignored; ASSAY_OPTIONS=help=1 lists them");
      say(text.c_str());
    }
    p = *end ? end + 1 : end;
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

void expand_pattern(const char *value, const char *program, Text &out) {
  for (const char *p = value, *end = end_of_value(value); p < end; p++) {
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
