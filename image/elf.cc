// ELF through LLVM's object reader, which the symbolizer needs anyway and which reads more kinds of
// files than are run here: what a symbol table says is the same for all. What a program's code needs
// (segments, stubs, relocations, files without section headers) is read by image/executable.h. Files
// whose headers would end LLVM's reader, and the program with it, are kept from it by
// image/section_check.h.

#include "image/elf.h"

#include "image/section_check.h"

#include "base/fail.h"

#include <llvm/Object/BuildID.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace image {
namespace {

std::optional<llvm::object::OwningBinary<llvm::object::ObjectFile>>
open_elf(const std::string &path, std::string *why) {
  if (auto damage = section_damage(path)) {
    if (why)
      *why = *damage;
    return std::nullopt;
  }
  auto file = llvm::object::ObjectFile::createObjectFile(path);
  if (!file) {
    std::string message = llvm::toString(file.takeError());
    if (why)
      *why = message;
    return std::nullopt;
  }
  if (!llvm::isa<llvm::object::ELFObjectFileBase>(file->getBinary())) {
    if (why)
      *why = "not an ELF file";
    return std::nullopt;
  }
  return std::move(*file);
}

struct DefinedSymbol {
  uint64_t address, size;
  unsigned type; // STT_*
  std::string name;
};

// Visits the defined symbols of the symbol table that are of functions or data, or of the dynamic
// one if the first has none (the file was stripped), and returns the file. `what` is wanted of it,
// for the message of the Failure.
template <class Visit>
llvm::object::OwningBinary<llvm::object::ObjectFile>
for_each_symbol(const std::string &path, const char *what, Visit visit) {
  std::string why;
  auto file = open_elf(path, &why);
  if (!file)
    base::fail("{}: its {} cannot be read: {}; name an executable or a shared object", path, what,
               why);
  const auto &elf = llvm::cast<llvm::object::ELFObjectFileBase>(*file->getBinary());
  bool any = false;
  auto take = [&](llvm::object::ELFSymbolRef symbol) {
    unsigned type = symbol.getELFType();
    if (type != llvm::ELF::STT_FUNC && type != llvm::ELF::STT_GNU_IFUNC &&
        type != llvm::ELF::STT_OBJECT && type != llvm::ELF::STT_COMMON)
      return;
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    auto flags = symbol.getFlags();
    if (name && address && flags && !(*flags & llvm::object::SymbolRef::SF_Undefined)) {
      any = true;
      visit(DefinedSymbol{*address, symbol.getSize(), type, name->str()});
    }
    if (!name)
      llvm::consumeError(name.takeError());
    if (!address)
      llvm::consumeError(address.takeError());
    if (!flags)
      llvm::consumeError(flags.takeError());
  };
  for (auto symbol : elf.symbols())
    take(symbol);
  if (!any)
    for (auto symbol : elf.getDynamicSymbolIterators())
      take(symbol);
  return std::move(*file);
}

} // namespace

std::optional<std::vector<uint8_t>> read_build_id(const std::string &path) {
  auto file = open_elf(path, nullptr);
  if (!file)
    return std::nullopt;
  auto id = llvm::object::getBuildID(file->getBinary());
  return std::vector<uint8_t>(id.begin(), id.end());
}

bool needs_loader(const std::string &path) {
  std::string why;
  auto file = open_elf(path, &why);
  if (!file)
    base::fail("{}: its headers cannot be read: {}; name an ELF file", path, why);
  const auto *elf = llvm::dyn_cast<llvm::object::ELF64LEObjectFile>(file->getBinary());
  if (!elf)
    return true;
  auto headers = elf->getELFFile().program_headers();
  if (!headers) {
    llvm::consumeError(headers.takeError());
    return true;
  }
  return std::any_of(headers->begin(), headers->end(),
                     [](const auto &header) { return header.p_type == llvm::ELF::PT_INTERP; });
}

std::vector<Function> functions(const std::string &path) {
  std::vector<Function> result;
  for_each_symbol(path, "functions", [&](const DefinedSymbol &symbol) {
    if (symbol.type == llvm::ELF::STT_FUNC || symbol.type == llvm::ELF::STT_GNU_IFUNC)
      result.push_back({symbol.address, symbol.size, symbol.name});
  });
  std::sort(result.begin(), result.end(), [](const Function &a, const Function &b) {
    return std::tie(a.address, a.linkage_name) < std::tie(b.address, b.linkage_name);
  });
  return result;
}

Data data(const std::string &path) {
  Data result;
  std::vector<DataSymbol> all;
  auto file = for_each_symbol(path, "data", [&](const DefinedSymbol &symbol) {
    // Marks of the C library's beginning and of the runtime's: nobody uses them, but what lies beside them.
    if (symbol.name == "_IO_stdin_used" || symbol.name == "__assay_program_begins")
      return;
    bool is_data = symbol.type == llvm::ELF::STT_OBJECT || symbol.type == llvm::ELF::STT_COMMON;
    if (is_data && symbol.size)
      all.push_back({symbol.address, symbol.size, symbol.name});
  });
  std::sort(all.begin(), all.end(), [](const DataSymbol &a, const DataSymbol &b) {
    return std::tuple(a.address, ~a.size, std::string_view(a.linkage_name)) <
           std::tuple(b.address, ~b.size, std::string_view(b.linkage_name));
  });
  uint64_t end = 0;
  for (DataSymbol &symbol : all)
    if (symbol.size <= UINT64_MAX - symbol.address && symbol.address + symbol.size > end) {
      end = symbol.address + symbol.size;
      result.symbols.push_back(std::move(symbol));
    }
  for (const llvm::object::ELFSectionRef section : file.getBinary()->sections()) {
    uint64_t flags = section.getFlags();
    if (!(flags & llvm::ELF::SHF_ALLOC) || (flags & llvm::ELF::SHF_TLS))
      continue;
    auto name = section.getName();
    // Relocated constants (tables of pointers) are written by the dynamic loader alone.
    bool relocated = name && name->starts_with(".data.rel.ro");
    if (!name)
      llvm::consumeError(name.takeError());
    result.sections.push_back(
        {section.getAddress(), section.getSize(), relocated || !(flags & llvm::ELF::SHF_WRITE)});
  }
  std::sort(result.sections.begin(), result.sections.end(),
            [](const DataSection &a, const DataSection &b) { return a.address < b.address; });
  return result;
}

std::string build_id_text(const std::vector<uint8_t> &build_id) {
  std::string text;
  for (uint8_t byte : build_id)
    text += fmt::format("{:02x}", byte);
  return text;
}

PresenceCheck check_presence(const std::string &path, const std::vector<uint8_t> &wanted) {
  auto found = read_build_id(path);
  if (!found)
    return {Presence::missing, {}};
  if (wanted.empty() || found->empty() || *found == wanted)
    return {Presence::same, std::move(*found)};
  return {Presence::other, std::move(*found)};
}

std::optional<std::string> file_with(const std::vector<uint8_t> &build_id, const std::string &path,
                                     const std::string &kept) {
  for (const std::string &file : {path, kept})
    if (!file.empty() && check_presence(file, build_id).presence == Presence::same)
      return file;
  return std::nullopt;
}

bool Data::has_constants(uint64_t begin, uint64_t end) const {
  return std::any_of(sections.begin(), sections.end(), [&](const DataSection &section) {
    return section.constant && section.address < end && begin < section.address + section.size;
  });
}

const DataSymbol *Data::symbol_at(uint64_t address) const {
  auto after = std::upper_bound(
      symbols.begin(), symbols.end(), address,
      [](uint64_t wanted, const DataSymbol &symbol) { return wanted < symbol.address; });
  if (after == symbols.begin())
    return nullptr;
  const DataSymbol &symbol = *std::prev(after);
  return address - symbol.address < symbol.size ? &symbol : nullptr;
}

} // namespace image
