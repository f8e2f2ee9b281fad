// What libraries that are preloaded into unmodified programs need at their beginning, before libc can be asked.
#pragma once

#include "runtime/core/system/syscall.h"

#include <stddef.h>

namespace assay {

// The value of a variable; null if it is not there.
inline const char *environment_of(char **envp, const char *name) {
  for (; envp && *envp; envp++) {
    size_t n = 0;
    while (name[n] && (*envp)[n] == name[n])
      n++;
    if (!name[n] && (*envp)[n] == '=')
      return *envp + n + 1;
  }
  return nullptr;
}

// "assay: TEXT" on standard error.
inline void say_line(const char *text) {
  char line[512];
  size_t n = 0;
  const char *parts[] = {"assay: ", text, "\n"};
  for (const char *part : parts)
    for (; *part && n < sizeof line; part++)
      line[n++] = *part;
  sys::write(2, line, n);
}

} // namespace assay
