// Unwinders find the table of the whole executable by its program header, before they have seen moved code. It has room for the entries of
// that, which lies behind all other code, so that they come last in the order of addresses.

#include "runtime/relocated/carried/carried.h"

namespace assay::relocated {
namespace {

// .eh_frame_hdr, with 32-bit distances from its begin.
struct Entry {
  int32_t code, frame;
};
struct Header {
  uint8_t version, encodings[3];
  int32_t frames;
  uint32_t count;
  Entry entries[];
};

Header *own_header() {
  return (Header *)loaded(assay_carried_runtime.unwind_header);
}

} // namespace

bool can_show_to_unwinders(const AssayMovedHeader &moved) {
  if (!moved.unwind_header)
    return true;
  const auto *from =
      (const Header *)((const char *)&moved + moved.code_offset + moved.unwind_header);
  return from->count <= assay_carried_runtime.unwind_room - own_header()->count;
}

void show_to_unwinders(const MovedModule &module) {
  if (!module.header->unwind_header)
    return;
  Header *to = own_header();
  const auto *from = (const Header *)(module.code + module.header->unwind_header);
  const auto distance = (int32_t)((const char *)from - (const char *)to);
  for (uint32_t i = 0; i < from->count; i++)
    to->entries[to->count++] = {from->entries[i].code + distance,
                                from->entries[i].frame + distance};
}

} // namespace assay::relocated
