// What a trace says of a program besides its accesses: files, functions, and where each access is made.
#pragma once

#include "profile/access_stream.h"

#include <cstdint>
#include <string>
#include <vector>

namespace analyze {

struct TracedFunction {
  std::string linkage_name; // may be empty
  uint64_t address = 0;     // in the file's ELF image
  bool is_traced = false;
  bool is_stub = false; // of the procedure linkage table
  std::string why_not;  // empty if it is traced
  // Of its instructions, as they stand in the file: accesses, those that are logged, values that these follow from.
  uint64_t accesses = 0, logged = 0, values = 0;
  std::vector<uint64_t> apart; // where code of it begins that lies elsewhere (`.cold`)
};

struct TracedModule {
  uint32_t number = 0; // as AccessSite::file
  std::string path;
  std::vector<uint8_t> build_id;
  bool is_traced = false;
  std::string why_not;
  std::vector<TracedFunction> functions;
};

struct TracedProgram {
  std::vector<std::string> command; // path of the executable, then its arguments
  std::vector<TracedModule> modules;
  std::vector<profile::AccessSite> sites; // Access::site is an index
  std::vector<std::string> parts;         // options that chose parts of the run; empty: all of it
  bool has_ended = false;                 // the recording came to its end
  uint64_t untraced_threads = 0;          // threads and handlers that found no room
  std::string damage;                     // empty if there is none
  uint64_t logged_bytes = 0, stored_bytes = 0; // 0: nothing was stored
  uint64_t values = 0, branches = 0;           // that were logged, and all accesses follow from
};

// Of the executable, as text; empty if it is not known.
std::string program_build_id(const TracedProgram &program);

} // namespace analyze
