// The bytes of a fuzzer as a file. Most mutations of the first bytes make a file that is no executable,
// so those that say "ELF, x86-64" are made right first; one input in eight, by its last byte, keeps
// them as they are.
#pragma once

#include <llvm/BinaryFormat/ELF.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace fuzz {

inline void identify(std::vector<std::byte> &bytes) {
  llvm::ELF::Elf64_Ehdr header;
  if (bytes.size() < sizeof(header))
    return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(header.e_ident, llvm::ELF::ElfMagic, 4);
  header.e_ident[llvm::ELF::EI_CLASS] = llvm::ELF::ELFCLASS64;
  header.e_ident[llvm::ELF::EI_DATA] = llvm::ELF::ELFDATA2LSB;
  header.e_machine = llvm::ELF::EM_X86_64;
  header.e_type = header.e_type % 2 ? llvm::ELF::ET_DYN : llvm::ELF::ET_EXEC;
  header.e_phentsize = sizeof(llvm::ELF::Elf64_Phdr);
  header.e_shentsize = sizeof(llvm::ELF::Elf64_Shdr);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

inline std::vector<std::byte> elf_bytes(const uint8_t *data, size_t size) {
  auto raw = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  if (size && data[size - 1] % 8 != 7)
    identify(bytes);
  return bytes;
}

} // namespace fuzz
