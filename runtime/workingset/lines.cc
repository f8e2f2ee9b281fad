// Bytes are shifted eight at a time by compare-and-swap, and bits are taken by exchange, so that a mark
// that comes in between is seen now or the next time. Pages of the shadow that were never touched are
// skipped: a snapshot costs what was touched, not the address space.

#include "runtime/workingset/lines.h"

#include <emmintrin.h>

#include "abi/line_encoding.h"
#include "abi/shadow.h"
#include "runtime/core/runtime.h"
#include "runtime/core/shadow/lazy_shadow.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/shadow/touched_pages.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/pages.h"

uint64_t __assay_lines_base = ASSAY_LINES_BASE;

namespace assay::workingset {
namespace {

AssayLineEncoding form() {
  return assay_line_encoding(units.mode);
}

uint64_t shadow_end(const AssayLineEncoding &f) {
  return (ASSAY_HIGH_END >> f.shift) + __assay_lines_base;
}

// Bit `plane` of 64 bytes, as a mask.
uint64_t plane_of(const __m128i *bytes, unsigned plane) {
  uint64_t mask = 0;
  for (unsigned i = 0; i < 4; i++) {
    __m128i up = _mm_slli_epi16(bytes[i], (int)(7 - plane)); // the bit becomes the sign of its byte
    mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(up) << (16 * i);
  }
  return mask;
}

void shift_once(uint64_t *word) {
  uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (old && !__atomic_compare_exchange_n(word, &old, (old >> 1) & 0x7f7f7f7f7f7f7f7fULL, true,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

template <typename F> void each_byte_group(uint64_t begin, uint64_t end, bool ends, F f) {
  for (uint64_t at = begin; at < end; at += 64) {
    uint64_t *words = (uint64_t *)at, any = 0;
    for (unsigned i = 0; i < 8; i++)
      any |= __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    if (!any)
      continue;
    __m128i bytes[4];
    for (unsigned i = 0; i < 4; i++)
      bytes[i] = _mm_load_si128((const __m128i *)at + i);
    Group group = {(at - __assay_lines_base) / 64, plane_of(bytes, 7), {}};
    for (unsigned i = 0; i < 7; i++)
      if (any & 0x0101010101010101ULL << (6 - i))
        group.before[i] = plane_of(bytes, 6 - i);
    f(group);
    for (unsigned i = 0; ends && i < 8; i++)
      shift_once(&words[i]);
  }
}

template <typename F> void each_bit_group(uint64_t begin, uint64_t end, bool ends, F f) {
  for (uint64_t at = begin; at < end; at += 8) {
    uint64_t lines = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED);
    if (lines && ends)
      lines = __atomic_exchange_n((uint64_t *)at, 0, __ATOMIC_RELAXED);
    if (lines)
      f(Group{(at - __assay_lines_base) / 8, lines, {}});
  }
}

void touch_bits(uint64_t first, uint64_t last) {
  for (uint64_t line = first; line <= last; line++) {
    uint8_t *byte = (uint8_t *)(__assay_lines_base + line / 8), bit = (uint8_t)(1 << line % 8);
    if (!(*byte & bit))
      __atomic_fetch_or(byte, bit, __ATOMIC_RELAXED);
  }
}

// Eight are looked at together; they are set one by one, because another thread may set its own.
void touch_bytes(uint64_t first, uint64_t last) {
  constexpr uint64_t kAll = 0x0101010101010101ULL * ASSAY_LINE_TOUCHED;
  uint8_t *at = (uint8_t *)(__assay_lines_base + first);
  uint8_t *end = (uint8_t *)(__assay_lines_base + last + 1);
  for (; end - at >= 8; at += 8) {
    uint64_t eight;
    __builtin_memcpy(&eight, at, 8);
    for (int i = 0; (eight & kAll) != kAll && i < 8; i++)
      touch_byte(at + i);
  }
  for (; at < end; at++)
    touch_byte(at);
}

template <typename F> void each_group(bool ends, F f) {
  const AssayLineEncoding form_now = form();
  auto look = [&](uint64_t program_begin, uint64_t program_end) {
    uint64_t begin = (program_begin >> form_now.shift) + __assay_lines_base;
    uint64_t end = (program_end >> form_now.shift) + __assay_lines_base;
    for_each_touched(page_down(begin), page_up(end), [&](uint64_t from, uint64_t to) {
      from = from < begin ? begin : from;
      to = to > end ? end : to;
      if (is_bits())
        each_bit_group(from, to, ends, f);
      else
        each_byte_group(from, to, ends, f);
    });
  };
#define ASSAY_LOOK(window) look(ASSAY_##window##_BEGIN, ASSAY_##window##_END);
  ASSAY_PROGRAM_WINDOWS(ASSAY_LOOK)
#undef ASSAY_LOOK
}

} // namespace

bool map_lines() {
  const AssayLineEncoding f = form();
  __assay_lines_base = f.base;
  if (reserve_shadow((unsigned)f.shift, f.base))
    return true;
  map_on_touch(f.base, shadow_end(f));
  // Something else is there: code with a dynamic base can still mark.
  void *elsewhere = reserve(ASSAY_HIGH_END >> f.shift);
  if (elsewhere)
    __assay_lines_base = (uint64_t)elsewhere;
  return elsewhere != nullptr;
}

bool lines_are_elsewhere() {
  return __assay_lines_base != form().base;
}

void reset_lines_in_child() {
  const AssayLineEncoding f = form();
  if (lines_are_elsewhere())
    empty_span((void *)__assay_lines_base, ASSAY_HIGH_END >> f.shift);
  else
    empty_shadow((unsigned)f.shift, f.base);
}

uint64_t line_bytes() {
  return form().line_bytes;
}

uint32_t held_snapshots() {
  return is_bits() ? 0 : kMaxPlanes - 1;
}

void touch_line(uint64_t number) {
  if (is_bits())
    touch_bits(number, number);
  else
    touch_byte((uint8_t *)__assay_lines_base + number);
}

void touch_lines(const void *start, uint64_t bytes) {
  uint64_t begin = (uint64_t)start, end = begin + bytes;
  if (bytes == 0 || end < begin || end > ASSAY_HIGH_END)
    return;
  const int shift = __builtin_ctzll(line_bytes());
  if (is_bits())
    touch_bits(begin >> shift, (end - 1) >> shift);
  else
    touch_bytes(begin >> shift, (end - 1) >> shift);
}

void visit_lines(void (*f)(void *context, const Group &group), void *context) {
  each_group(false, [&](const Group &group) { f(context, group); });
}

void end_lines(void (*f)(void *context, const Group &group), void *context) {
  each_group(true, [&](const Group &group) { f(context, group); });
}

} // namespace assay::workingset
