#include "values/vdso.h"

#include "base/fail.h"

#include <cstddef>
#include <elf.h>
#include <sys/auxv.h>

namespace values {

Vdso::Vdso() {
  const auto *begin = reinterpret_cast<const std::byte *>(getauxval(AT_SYSINFO_EHDR));
  if (!begin)
    return;
  const auto &header = *reinterpret_cast<const Elf64_Ehdr *>(begin);
  const size_t size =
      header.e_shoff + size_t{header.e_shentsize} * header.e_shnum; // they come last
  try {
    image_.emplace(std::vector<std::byte>(begin, begin + size), "[vdso]");
  } catch (const base::Failure &) { // its code has no names then
  }
}

const image::CodeRange *Vdso::function_at(uint64_t address) const {
  return image_ ? image_->function_at(address) : nullptr;
}

} // namespace values
