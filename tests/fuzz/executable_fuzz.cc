// Any bytes: making an Executable ends, with a Failure or an object; whatever the object offers can be
// asked for, is in order, and stays in proportion to the bytes.

#include "base/fail.h"
#include "image/executable.h"
#include "tests/fuzz/elf_bytes.h"

#include <cstdlib>

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

void walk(const image::Executable &executable, size_t size) {
  size_t names = 0;
  uint64_t end = 0;
  for (const image::CodeRange &each : executable.functions()) {
    require(each.begin >= end && each.begin < each.end);
    require(executable.executable_at(each.begin) && executable.executable_at(each.end - 1));
    require(executable.function_at(each.begin) == &each);
    require(executable.function_at(each.end - 1) == &each);
    require(executable.bytes(each.begin, each.end - each.begin).size() == each.end - each.begin);
    executable.import_of_stub(each.begin);
    names += each.name.size();
    end = each.end;
  }
  require(names <= 32 * size + (size_t(1) << 18));
  for (uint64_t pointer : executable.code_pointers()) {
    require(executable.executable_at(pointer));
    executable.function_at(pointer);
  }
  uint64_t last = 0;
  for (const image::LandingPad &pad : executable.landing_pads()) {
    require(pad.call_begin >= last && pad.call_begin < pad.call_end);
    require(executable.executable_at(pad.pad));
    last = pad.call_begin;
  }
  for (const image::Segment &segment : executable.segments()) {
    require(executable.bytes(segment.address, segment.file_size).size() == segment.file_size);
    uint64_t sum = 0;
    for (std::byte byte : executable.bytes_from(segment.address))
      sum += std::to_integer<uint64_t>(byte);
    require(sum != UINT64_MAX);
    for (uint64_t offset = 0; offset < segment.file_size && offset < 4096; offset += 4) {
      executable.relocated_word(segment.address + offset);
      executable.import_of_slot(segment.address + offset);
      executable.import_of_stub(segment.address + offset);
      executable.writable_at(segment.address + offset);
    }
  }
  if (executable.entry())
    executable.function_at(*executable.entry());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    walk(image::Executable(fuzz::elf_bytes(data, size), "x"), size);
  } catch (const base::Failure &) {
  }
  return 0;
}
