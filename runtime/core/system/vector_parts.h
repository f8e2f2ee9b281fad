// The buffers of a call like readv, as far as its result says that it got.
#pragma once

#include <stdint.h>
#include <sys/uio.h>

namespace assay {

// Calls f(first byte, bytes) for the parts of the first so many bytes of a vector of `count` buffers.
template <typename F> void for_each_part(const void *vector, uint64_t count, uint64_t bytes, F f) {
  const iovec *part = (const iovec *)vector;
  for (; count && bytes; count--, part++) {
    const uint64_t size = part->iov_len < bytes ? part->iov_len : bytes;
    if (size)
      f(part->iov_base, size);
    bytes -= size;
  }
}

} // namespace assay
