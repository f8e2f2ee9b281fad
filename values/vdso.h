// The functions of the code that the kernel maps into every process ("[vdso]"): clock_gettime, getcpu, ...
// It is in no file. That of this process has the same bytes as the others'.
#pragma once

#include "image/executable.h"

#include <cstdint>
#include <optional>

namespace values {

class Vdso {
public:
  Vdso();

  // The function that covers an address, counted from where the vdso begins; null if there is none.
  const image::CodeRange *function_at(uint64_t address) const;

private:
  std::optional<image::Executable> image_; // none: the kernel maps no such code here
};

} // namespace values
