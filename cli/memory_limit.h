// Which limit of memory holds for us, and for what we start.
#pragma once

#include <cstdio>
#include <sys/resource.h>

namespace cli {

// As a shell sets it: "`ulimit -v`"; null: none is set that would matter.
inline const char *memory_limit() {
  constexpr rlim_t kEnough = rlim_t{1} << 30; // of data
  rlimit addresses = {}, data = {};
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur < kEnough)
    return "`ulimit -d`";
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    return "`ulimit -v`";
  return nullptr;
}

// Of the tool itself; takes none.
inline void say_memory_is_used_up() {
  if (const char *limit = memory_limit())
    std::fprintf(stderr, "assay: memory is used up; raise its limit (%s), or read less at once\n",
                 limit);
  else
    std::fputs("assay: memory is used up; read less at once, or raise the memory limit of the "
               "container\n",
               stderr);
}

} // namespace cli
