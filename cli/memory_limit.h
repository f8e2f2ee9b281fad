// Which limit of memory holds for us, and for what we start.
#pragma once

#include <string>
#include <sys/resource.h>
#include <utility>

namespace cli {

// As a shell sets it: "`ulimit -v`"; empty: none is set.
inline std::string memory_limit() {
  for (const auto &[limit, name] :
       {std::pair(RLIMIT_AS, "`ulimit -v`"), {RLIMIT_DATA, "`ulimit -d`"}}) {
    rlimit set = {};
    if (getrlimit(limit, &set) == 0 && set.rlim_cur != RLIM_INFINITY)
      return name;
  }
  return "";
}

} // namespace cli
