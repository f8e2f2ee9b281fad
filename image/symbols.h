// From addresses in modules to functions and source lines.
//
// Nothing is read before it is asked for; every answer is kept. A module whose file is missing or
// has another build id yields frames "module+0xoffset" and one note that says which file is wanted.
#pragma once

#include "image/elf.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace image {

struct ModuleFile {
  std::string path;
  std::vector<uint8_t> build_id; // empty: unknown, whatever is at the path is taken
};

// One function on a call stack. A call site may yield several, when callees were inlined into it.
struct Frame {
  std::string function;     // demangled; "name+0xoffset" of the module where nothing is known
  std::string linkage_name; // as in the symbol table; empty where nothing is known
  std::string file;         // empty if unknown, as are the lines 0
  uint32_t line = 0, column = 0;
  uint32_t function_start_line = 0;
  std::string module;   // path
  uint64_t address = 0; // in the module's ELF image: the call, not the return address
  bool inlined = false; // into the next outer frame
};

// Where a variable is declared; file empty and line 0 if that is unknown.
struct Declaration {
  std::string file;
  uint32_t line = 0;
};

class Symbols {
public:
  static constexpr uint32_t kNoModule = UINT32_MAX;

  explicit Symbols(std::vector<ModuleFile> modules);
  ~Symbols();
  Symbols(Symbols &&) noexcept;

  // The frames of the call that returns to `return_address`, innermost first, at least one.
  // `module` indexes the modules given at the start; kNoModule means that the address belongs to
  // none. The reference stays valid as long as the object.
  const std::vector<Frame> &call(uint32_t module, uint64_t return_address);

  // The data of a module; nothing if it has no usable file.
  const Data &data(uint32_t module);

  // Of the variable that lies at an address of a module's ELF image.
  Declaration declaration(uint32_t module, uint64_t address);

  const std::vector<ModuleFile> &modules() const;

  // One sentence for each module that had to stay without names.
  const std::vector<std::string> &notes() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

inline Symbols open(std::vector<ModuleFile> modules) {
  return Symbols(std::move(modules));
}

// "ns::table" of "_ZN2ns5tableE"; what is no mangled name stays.
std::string demangled(const std::string &linkage_name);

// The last component of a path.
std::string base_name(const std::string &path);

} // namespace image
