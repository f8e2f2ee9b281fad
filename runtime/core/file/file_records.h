// The records of our own file, read back to be rewritten (ProfileFile::replace).
#pragma once

#include <sys/mman.h>

#include "abi/records.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {

struct FileRecord {
  AssayRecordHeader header; // its kind without ASSAY_RECORD_SPARSE
  bool is_sparse;
  const uint8_t *fixed, *tail; // as they are stored
  size_t tail_size;
  template <typename T> T as() const {
    T t = {};
    static_assert(sizeof t < ASSAY_SPARSE_MAX);
    if (is_sparse) {
      uint8_t whole[ASSAY_SPARSE_MAX];
      size_t size = assay_make_whole(fixed, header.fixed_size, whole);
      __builtin_memcpy(&t, whole, size < sizeof t ? size : sizeof t);
    } else
      __builtin_memcpy(&t, fixed, header.fixed_size < sizeof t ? header.fixed_size : sizeof t);
    return t;
  }
};

// Reads the record at from, and goes on to the next. False when there is no whole one.
inline bool take_record(const uint8_t *&from, const uint8_t *end, FileRecord &r) {
  if ((size_t)(end - from) < sizeof r.header)
    return false;
  __builtin_memcpy(&r.header, from, sizeof r.header);
  r.fixed = from + sizeof r.header;
  size_t body = r.header.length + assay_padding(r.header.length);
  if (body > (size_t)(end - r.fixed) || r.header.fixed_size > r.header.length)
    return false;
  r.is_sparse = r.header.kind & ASSAY_RECORD_SPARSE;
  r.header.kind &= ~ASSAY_RECORD_SPARSE;
  r.tail = r.fixed + r.header.fixed_size;
  r.tail_size = r.header.length - r.header.fixed_size;
  from = r.fixed + body;
  return true;
}

// Calls f for each record of a mapped file until it says false. False then, and when the records do
// not fill the file: the file must stay as it is. Pages that were read count as the program's
// memory, so they are dropped; a second reading gets them from the file again.
template <typename F> bool each_record(const uint8_t *from, size_t size, F f) {
  constexpr uint64_t kStep = 256 << 10;
  const uint8_t *end = from + size, *begin = from - (uint64_t)from % kPage, *next = begin + kStep;
  for (FileRecord r; from < end;) {
    if (!take_record(from, end, r) || !f(r))
      return false;
    if (from >= next) {
      sys::advise((void *)begin, (size_t)(from - begin) / kPage * kPage, MADV_DONTNEED);
      next = from + kStep;
    }
  }
  return true;
}

} // namespace assay
