// ELF through LLVM's object reader. Writing a reader of our own was refused: it is a parser of
// untrusted bytes that LLVM has fuzzed for years, and the symbolizer needs it anyway.

#include "image/elf.h"

#include "base/fail.h"

#include <llvm/Object/BuildID.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>

namespace image {
namespace {

std::optional<llvm::object::OwningBinary<llvm::object::ObjectFile>>
open_elf(const std::string &path, std::string *why) {
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

} // namespace

std::optional<std::vector<uint8_t>> read_build_id(const std::string &path) {
  auto file = open_elf(path, nullptr);
  if (!file)
    return std::nullopt;
  auto id = llvm::object::getBuildID(file->getBinary());
  return std::vector<uint8_t>(id.begin(), id.end());
}

std::vector<Function> functions(const std::string &path) {
  std::string why;
  auto file = open_elf(path, &why);
  if (!file)
    base::fail("{}: its functions cannot be read: {}; name an executable or a shared object", path,
               why);
  const auto &elf = llvm::cast<llvm::object::ELFObjectFileBase>(*file->getBinary());
  std::vector<Function> result;
  auto take = [&](llvm::object::ELFSymbolRef symbol) {
    if (symbol.getELFType() != llvm::ELF::STT_FUNC &&
        symbol.getELFType() != llvm::ELF::STT_GNU_IFUNC)
      return;
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    auto flags = symbol.getFlags();
    if (name && address && flags && !(*flags & llvm::object::SymbolRef::SF_Undefined))
      result.push_back({*address, symbol.getSize(), name->str()});
    if (!name)
      llvm::consumeError(name.takeError());
    if (!address)
      llvm::consumeError(address.takeError());
    if (!flags)
      llvm::consumeError(flags.takeError());
  };
  for (auto symbol : elf.symbols())
    take(symbol);
  if (result.empty())
    for (auto symbol : elf.getDynamicSymbolIterators())
      take(symbol);
  std::sort(result.begin(), result.end(), [](const Function &a, const Function &b) {
    return std::tie(a.address, a.linkage_name) < std::tie(b.address, b.linkage_name);
  });
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

} // namespace image
