// A handful of spans, one for each call at most.

#include "runtime/core/shadow_map.h"

#include "runtime/core/arena.h"

namespace assay {
namespace {

struct Span {
  uint64_t begin, end;
};

constexpr int kMost = 8;

struct {
  Span spans[kMost];
  int used;
} constinit mapped = {};

} // namespace

bool reserve_shadow(uint64_t begin, uint64_t end) {
  while (begin < end) {
    const Span *here = nullptr; // the span that begin lies in, or the first beyond it
    uint64_t stop = end;
    for (int i = 0; i < mapped.used; i++) {
      const Span &span = mapped.spans[i];
      if (span.begin <= begin && begin < span.end)
        here = &span;
      else if (span.begin > begin && span.begin < stop)
        stop = span.begin;
    }
    if (here) {
      begin = here->end;
      continue;
    }
    if (mapped.used == kMost || !reserve(stop - begin, begin))
      return false;
    mapped.spans[mapped.used++] = {begin, stop};
    begin = stop;
  }
  return true;
}

} // namespace assay
