// Functions of code that processes make while they run (JIT compilers), as the processes tell them: in /tmp/perf-PID.map, which V8,
// the JVM's agents, .NET, LuaJIT and CPython write for perf.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace values {

// What one process tells. Lines of such a file: "7f5aef7c6c40 1a0 LazyCompile:*step loop.js:2", begin and size in hexadecimal; of
// lines that overlap the later one holds, because code is freed and its place used again.
class PerfMap {
public:
  struct Function {
    uint64_t begin = 0, end = 0;
    std::string name;
  };
  // The function at an address; null if none is told.
  const Function *function_at(uint64_t address) const;
  // One more line, or what was read of it.
  void add_line(const std::string &line);

private:
  std::map<uint64_t, Function> functions_; // by begin; they do not overlap
};

class MadeCode {
public:
  // Reads on where the process has written more since it was last asked in vain. Null if it tells nothing of the address. Valid until the
  // next call.
  const PerfMap::Function *function_at(uint32_t pid, uint64_t address);

private:
  struct Process {
    std::vector<std::string> paths; // where the file may be
    PerfMap map;
    uint64_t read = 0; // bytes of the file
  };
  static bool read_on(uint32_t pid, Process &process);
  std::map<uint32_t, Process> processes_;
};

} // namespace values
