// What the ELF headers of a file say: its build id, its functions and its data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace image {

struct Function {
  uint64_t address = 0; // in the ELF image
  uint64_t size = 0;
  std::string linkage_name;
};

// A variable or constant.
struct DataSymbol {
  uint64_t address = 0, size = 0; // in the ELF image; size is not 0
  std::string linkage_name;
};

struct DataSection {
  uint64_t address = 0, size = 0;
  bool constant = false; // not written once the program is relocated
};

// By address. Of symbols that lie within others (aliases, members of a table) the outermost is
// there, of equal ones the alphabetically first, so that ends are in order as well.
struct Data {
  std::vector<DataSymbol> symbols;
  std::vector<DataSection> sections; // those that are loaded, but for thread-local ones

  // Whether a constant section has a byte in [begin, end).
  bool has_constants(uint64_t begin, uint64_t end) const;
  // The symbol that covers the address, or nullptr.
  const DataSymbol *symbol_at(uint64_t address) const;
};

// The build id of the file; empty if it has none; nullopt if there is no readable ELF file at
// `path`.
std::optional<std::vector<uint8_t>> read_build_id(const std::string &path);

// Whether the file is an ELF executable that names a loader: others are linked statically. Throws
// Failure if it is not a readable ELF file.
bool needs_loader(const std::string &path);

// The functions of its symbol table, or of the dynamic one if it was stripped, by address. Throws
// Failure if it is not a readable ELF file.
std::vector<Function> functions(const std::string &path);

// Its data, from the same tables. Throws Failure if it is not a readable ELF file.
Data data(const std::string &path);

// "0123abcd…", lower-case hexadecimal.
std::string build_id_text(const std::vector<uint8_t> &build_id);

// Whether the file that a profile speaks of is the one at this path now.
enum class Presence { same, missing, other };
struct PresenceCheck {
  Presence presence = Presence::missing;
  std::vector<uint8_t> found; // the build id there, if there is a file
};
// A file without a build id, or a wanted one that is empty, is taken to be the same.
PresenceCheck check_presence(const std::string &path, const std::vector<uint8_t> &wanted);

// The file with a build id: the one at `path`, or else `kept`, which may be empty; nothing if neither is it.
std::optional<std::string> file_with(const std::vector<uint8_t> &build_id, const std::string &path,
                                     const std::string &kept);

} // namespace image
