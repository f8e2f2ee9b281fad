// What a recording is asked for.
#pragma once

#include "abi/trace_ring.h"
#include "trace/moved_code.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace trace {

struct RecordingSettings {
  std::filesystem::path folder;     // where moved code is written while the recording lasts
  std::filesystem::path cache;      // where moved code is kept for other recordings; empty: nowhere
  uint32_t log = ASSAY_LOG_groups;  // sum of ASSAY_LOG_*
  bool plans = true;                // MoveSettings::plans
  std::vector<std::string> only;    // names of functions; all, if empty
  std::vector<std::string> modules; // names of files, without folders; all, if empty
  // The gate (abi/trace_ring.h), asked for at every poll with the program's running time, less what
  // moving code has taken. Threads notice it soon: loops log in each iteration. Empty: all is
  // logged.
  std::function<uint32_t(uint64_t elapsed_ns)> gate;
  // Instead of a gate: marks of the program (assay/annotate.h) at which threads begin to log, and stop. Empty: from the
  // begin, to the end.
  std::string start_mark, stop_mark;
  // Called before the code of a file is moved, with its size in bytes; the program waits meanwhile. May be empty.
  std::function<void(const std::string &path, uint64_t code)> moves;
};

} // namespace trace
