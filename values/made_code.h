// Functions of code that processes make while they run (JIT compilers), as the processes tell them:
// in /tmp/perf-PID.map, which V8, the JVM's agents, .NET, LuaJIT and CPython write for perf.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace values {

// What one process tells. Lines of such a file: "7f5aef7c6c40 1a0 LazyCompile:*step loop.js:2",
// begin and size in hexadecimal; of lines that overlap the later one holds, because code is freed
// and its place used again.
class PerfMap {
public:
  struct Function {
    uint64_t begin = 0, end = 0;
    std::string name;
  };
  // The function at an address; null if none is told.
  const Function *function_at(uint64_t address) const;
  void add_line(const std::string &line);
  size_t size() const { return functions_.size(); }

private:
  std::map<uint64_t, Function> functions_; // by begin; they do not overlap
};

class MadeCode {
public:
  // As the process tells it now: reads on where it has written more, anew where it has begun again.
  // Null if it tells nothing of the address. Valid until the next call.
  const PerfMap::Function *function_at(uint32_t pid, uint64_t address);

private:
  struct Process {
    std::vector<std::string> paths; // where the file may be
    int64_t began_ns = 0; // CLOCK_REALTIME; a file that is older is another's who had the number
    PerfMap map;
    uint64_t inode = 0, size = 0; // of the file, as it was read
    int64_t changed_ns = 0;
    uint64_t read = 0;     // bytes of it
    std::string last_line; // before that
    bool is_bad = false;   // it is no such file
  };
  static void read_on(uint32_t pid, Process &process);
  std::map<uint32_t, Process> processes_;
};

} // namespace values
