// Unwinders find the table of the whole executable by its program header, before they have seen
// moved code. It has room for the entries of that, which lies behind all other code, so that they
// come last in the order of addresses.

#include "runtime/relocated/carried/carried.h"

namespace assay::relocated {
namespace {

AssayUnwindHeader *own_header() {
  return (AssayUnwindHeader *)loaded(assay_carried_runtime.unwind_header);
}

AssayUnwindEntry *entries_of(const AssayUnwindHeader *header) {
  return (AssayUnwindEntry *)(header + 1);
}

} // namespace

bool can_show_to_unwinders(const AssayMovedHeader &moved) {
  if (!moved.unwind_header)
    return true;
  const auto *from =
      (const AssayUnwindHeader *)((const char *)&moved + moved.code_offset + moved.unwind_header);
  return from->count <= assay_carried_runtime.unwind_room - own_header()->count;
}

void show_to_unwinders(const MovedModule &module) {
  if (!module.header->unwind_header)
    return;
  AssayUnwindHeader *to = own_header();
  const auto *from = (const AssayUnwindHeader *)(module.code + module.header->unwind_header);
  const auto distance = (int32_t)((const char *)from - (const char *)to);
  for (uint32_t i = 0; i < from->count; i++) {
    const AssayUnwindEntry &entry = entries_of(from)[i];
    entries_of(to)[to->count++] = {entry.code + distance, entry.frame + distance};
  }
}

} // namespace assay::relocated
