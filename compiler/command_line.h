// A compiler command line as Assay reads it, and the one that clang gets instead.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay::compiler {

// Where the plugin and the runtime are.
struct Installation {
  std::string folder; // lib/assay
  // The path of a file in it. Throws std::runtime_error with a sentence where it cannot be read.
  std::string file(const std::string &name) const;
};

struct CommandLine {
  bool help = false;
  uint64_t tools = 0; // set of abi/tools.h; 0: as plain clang
  std::string dir;    // of -fheapprof=DIR
  std::vector<std::string> ignore_lists;
  bool naive = false;
  bool exact = false;
  bool precise_stacks = false;
  std::map<std::string, uint32_t> modes; // of tools, by name: bits of abi/sites.h
  bool plus_plus = false;                // called as assay-c++
  bool is_static = false;                // -static or -static-pie
  bool own_malloc = false;     // asked by -fassay-wrap, or an allocator's archive is linked
  bool shared_runtime = false; // the runtime is a shared library
  bool links = false;          // an executable or a shared object comes out
  bool shared = false;         // a shared object
  bool compiles = false;       // a source goes in
  bool no_runtime = false;     // -r: the result is linked again
  bool other_machine = false;  // not x86-64: nothing is instrumented
  bool excludes_tokens =
      false; // the user asked for a sanitizer that clang does not combine with alloc-token
  std::vector<std::string> rest; // the arguments that are clang's
};

// Reads the arguments (without argv[0]); @files are looked into but stay as they are. Throws
// std::runtime_error with a sentence for what Assay cannot do.
CommandLine read_command_line(const std::vector<std::string> &arguments);

// The arguments for clang.
std::vector<std::string> clang_arguments(const CommandLine &line, const Installation &installation);

// The table of flags.def.
std::string flags_help();

} // namespace assay::compiler
