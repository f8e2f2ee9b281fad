// Any bytes as a module: symbolizing a few of its addresses and reading its data, functions and
// struct layouts ends, with frames or a Failure. Debug info is read by LLVM, whose own code is not
// instrumented here: what is looked for are crashes and hangs of the whole.

#include "base/fail.h"
#include "image/elf.h"
#include "image/layout.h"
#include "image/symbols.h"

#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : file_(memfd_create("symbols_fuzz", MFD_CLOEXEC)) {
    if (file_ < 0 || write(file_, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~MemoryFile() { close(file_); }
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  }

private:
  int file_;
};

} // namespace

// LLVM forgets some error values, and a crash that is survived leaves everything behind.
extern "C" int __lsan_is_turned_off() {
  return 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(data, size);
  std::string path = file.path();
  uint64_t first = 0;
  try {
    for (const image::Function &each : image::functions(path)) {
      first = each.address;
      break;
    }
  } catch (const base::Failure &) {
  }
  image::Symbols symbols({{path, {}}});
  for (uint64_t address : {uint64_t(0), uint64_t(0x1005), first + 1, first + 8, UINT64_MAX})
    if (symbols.call(0, address).empty())
      std::abort();
  symbols.declaration(0, 0x4000);
  try {
    symbols.data(0);
  } catch (const base::Failure &) {
  }
  try {
    image::struct_layouts(path, {"Node"});
  } catch (const base::Failure &) {
  }
  return 0;
}
