// Which limit of memory holds for us, and for what we start.
#pragma once

#include <cstdio>
#include <optional>
#include <sys/resource.h>

namespace cli {

struct MemoryLimit {
  const char *name; // as a shell sets it: "ulimit -v"
  rlim_t bytes;
};

// Nothing: none is set.
inline std::optional<MemoryLimit> memory_limit() {
  rlimit addresses = {}, data = {};
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
    return MemoryLimit{"ulimit -d", data.rlim_cur};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    return MemoryLimit{"ulimit -v", addresses.rlim_cur};
  return std::nullopt;
}

// Of the tool itself; takes none.
inline void say_memory_is_used_up() {
  if (const auto limit = memory_limit())
    std::fprintf(stderr, "assay: memory is used up; raise its limit (`%s`), or read less at once\n",
                 limit->name);
  else
    std::fputs("assay: memory is used up; read less at once, or raise the memory limit of the "
               "container\n",
               stderr);
}

} // namespace cli
