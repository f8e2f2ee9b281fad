// From addresses in modules to functions and source lines.
//
// Nothing is read before it is asked for; every answer is kept. A module whose file is missing or
// has another build id yields frames "module+0xoffset" and one note that says which file is wanted.
#pragma once

#include "image/elf.h"
#include "image/frame.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace image {

struct ModuleFile {
  std::string path;
  std::vector<uint8_t> build_id; // empty: unknown, whatever is at the path is taken
  // A file with that build id, for when the one at the path has another; may be empty.
  std::string kept = {};
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

  // The frames of the call that returns to `return_address`, innermost first, at least one: the same
  // objects whenever it is asked for. `module` indexes the modules given at the start; kNoModule
  // means that the address belongs to none. The reference stays valid as long as the object, the
  // frames as long as somebody holds them.
  const CallStack &call(uint32_t module, uint64_t return_address);

  // Where the function begins that an address of a module lies in, by its symbols and unwind
  // tables: of stripped files, too. Nothing where these say nothing.
  std::optional<uint64_t> function_begin(uint32_t module, uint64_t address);

  // "malloc@plt" of an address in such a stub, which no symbol names; of the one that calls the loader "plt". Empty of
  // other addresses.
  std::string stub(uint32_t module, uint64_t address);

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
