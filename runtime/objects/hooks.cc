// What instrumented code calls, beside the marks that it makes itself.

#include "runtime/core/runtime.h"
#include "runtime/core/system/string_bytes.h"
#include "runtime/core/system/vector_parts.h"
#include "runtime/objects/locals.h"
#include "runtime/objects/words.h"

using namespace assay::objects;

extern "C" {

void __assay_objects_range(const void *start, uint64_t bytes) {
  touch_words(start, bytes);
}

void __assay_objects_vector(const void *vector, uint64_t count, uint64_t bytes) {
  assay::for_each_part(vector, count, bytes,
                       [](const void *start, uint64_t size) { touch_words(start, size); });
}

void __assay_objects_string(const char *start, uint64_t limit) {
  touch_words(start, assay::string_bytes(start, limit));
}

void __assay_objects_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  uint64_t bytes = assay::compared_bytes(a, b, limit, how);
  touch_words(a, bytes);
  touch_words(b, bytes);
}

void __assay_objects_masked(const void *start, uint64_t element_bytes, uint64_t mask) {
  for (; mask; mask &= mask - 1)
    touch_words((const char *)start + element_bytes * (uint64_t)__builtin_ctzll(mask),
                element_bytes);
}

void __assay_objects_local_begin(const void *start, uint64_t bytes) {
  begin_local(start, bytes);
}

void __assay_objects_local_end(const void *start, uint64_t bytes, uint32_t type) {
  end_local(start, bytes, assay::TypeId{type}, __builtin_frame_address(0));
}
}
