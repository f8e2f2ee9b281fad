// Bytes are sampled eight at a time by compare-and-swap, so that a mark that comes in between is
// seen now or the next time. Threads set marks by plain stores, of words that were not marked:
// those are no others' business, and the sampler's neither.
//
// Large ranges are looked at page by page, where the kernel says that pages were touched, and
// cleared by dropping pages: a huge object costs what is used of it.
//
// Where the kernel lays out the program's mappings in another way (an unlimited stack, `setarch
// -L`), they lie where words have their shadow. Then the tool is off. What instrumented code marks
// all the same is mapped as it is touched, but never where the program's own mappings are.

#include "runtime/objects/words.h"

#include <emmintrin.h>

#include "runtime/core/shadow/lazy_shadow.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/shadow/touched_pages.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"
#include "runtime/objects/hot_words.h"

uint64_t __assay_words_base = ASSAY_WORDS_BASE;

namespace assay::objects {
namespace {

constexpr uint64_t kScanBytes =
    64 * kPage; // of shadow: from here on asking the kernel beats looking
constexpr uint64_t kDropBytes = 16 * kPage; // and dropping pages beats writing zeros
constexpr uint64_t kMarks = 0x0101010101010101ULL * ASSAY_WORD_TOUCHED;
constexpr uint64_t kSamplesOfHotUnit = 64;
constexpr uint64_t kAccessesOfHotUnit = 1ULL << 31;

constinit AssayWordEncoding form = {~0ULL, ASSAY_WORDS_SHIFT, 0, ASSAY_WORD_BYTES};

bool is_counters() {
  return (units.mode & ASSAY_WORDS_COUNTERS) != 0;
}
bool is_bits() {
  return (units.mode & ASSAY_WORDS_BITS) != 0;
}
bool is_locality() {
  return (units.mode & ASSAY_WORDS_LOCALITY) != 0;
}

// The byte of the shadow that an address has a part in.
inline uint64_t place_of(uint64_t address) {
  return ((address & form.mask) >> form.shift) + __assay_words_base;
}

// The bytes of shadow that a range has a part in.
struct Shadow {
  uint64_t first, end;
  uint64_t bytes() const { return end - first; }
};
inline Shadow shadow_of(uint64_t start, uint64_t size) {
  uint64_t more = is_counters() ? ASSAY_WORD_BYTES : 1;
  return {place_of(start), place_of(start + size - 1) + more};
}

inline uint64_t bits_below(uint64_t n) {
  return n >= 64 ? ~0ULL : (1ULL << n) - 1;
}

// Which units of the line at this address were accessed.
uint64_t used_in(uint64_t line) {
  const uint64_t place = place_of(line);
  if (is_bits())
    return *(const uint64_t *)place;
  if (is_counters()) {
    uint64_t used = 0;
    for (unsigned i = 0; i < 16; i++)
      used |= (uint64_t)(((const uint32_t *)place)[i] != 0) << i;
    return used;
  }
  __m128i zero = _mm_cmpeq_epi8(_mm_load_si128((const __m128i *)place), _mm_setzero_si128());
  return (uint64_t)_mm_movemask_epi8(zero) ^ 0xffff;
}

void read_unit(LineUnits &line, uint64_t address, uint32_t number) {
  line.again[number] = 0;
  if (is_bits()) {
    line.hotness[number] = 1;
    return;
  }
  uint64_t beyond = is_hot_page(address) ? hot_units(address) : 0;
  if (is_counters()) {
    line.hotness[number] = *(const uint32_t *)place_of(address) + beyond * kAccessesOfHotUnit;
    return;
  }
  uint8_t byte = *(const uint8_t *)place_of(address);
  if (is_locality()) {
    line.hotness[number] = (uint64_t)__builtin_popcount(byte);
    line.again[number] = (uint8_t)__builtin_popcount(byte & byte >> 1);
  } else {
    line.hotness[number] = (byte & ASSAY_WORD_SAMPLES) + (byte >> 7) + beyond * kSamplesOfHotUnit;
  }
}

template <typename F>
void each_used_line(uint64_t from, uint64_t to, uint64_t start, uint64_t end, F f) {
  const uint64_t unit = form.unit_bytes, first_unit = start / unit;
  for (uint64_t at = from & ~63ULL; at < to; at += ASSAY_LINE_BYTES) {
    uint64_t used = used_in(at);
    if (!used)
      continue;
    const uint64_t begin = at > start ? at : start;
    const uint64_t last = at + ASSAY_LINE_BYTES < end ? at + ASSAY_LINE_BYTES - 1 : end - 1;
    LineUnits line;
    line.address = at;
    line.place = (uint32_t)((begin - at) / unit);
    line.first = begin / unit - first_unit;
    line.count = (uint32_t)(last / unit - begin / unit + 1);
    line.used = used >> line.place & bits_below(line.count);
    if (!line.used)
      continue;
    for (uint64_t left = line.used; left; left &= left - 1) {
      auto i = (uint32_t)__builtin_ctzll(left);
      read_unit(line, at + (line.place + i) * unit, i);
    }
    f(line);
  }
}

// Writes nothing where nothing is: that would take memory.
void zero(uint64_t at, uint64_t end) {
  for (; at < end && at % 8; at++)
    if (*(uint8_t *)at)
      *(uint8_t *)at = 0;
  for (; end - at >= 8 && at < end; at += 8)
    if (*(uint64_t *)at)
      *(uint64_t *)at = 0;
  for (; at < end; at++)
    if (*(uint8_t *)at)
      *(uint8_t *)at = 0;
}

// Where the first and the last byte of the range share a byte of the shadow with what lies beside it.
void zero_bits(uint64_t start, uint64_t size) {
  const uint64_t end = start + size, first = place_of(start), last = place_of(end - 1);
  uint8_t keep_first = (uint8_t)bits_below(start % 8),
          keep_last = (uint8_t)~bits_below((end - 1) % 8 + 1);
  if (first == last) {
    __atomic_fetch_and((uint8_t *)first, (uint8_t)(keep_first | keep_last), __ATOMIC_RELAXED);
    return;
  }
  __atomic_fetch_and((uint8_t *)first, keep_first, __ATOMIC_RELAXED);
  zero(first + 1, last);
  __atomic_fetch_and((uint8_t *)last, keep_last, __ATOMIC_RELAXED);
}

void clear_hot(uint64_t start, uint64_t size) {
  for_each_hot_page(start, start + size, [&](uint64_t page) {
    for (uint64_t at = page > start ? page : start; at < start + size && at < page + kPage;
         at += ASSAY_WORD_BYTES)
      set_hot_units(at, 0);
  });
}

// Words may move over themselves.
void move_hot(uint64_t source, uint64_t size, uint64_t target) {
  bool is_any_hot = false;
  const auto note = [&](uint64_t) { is_any_hot = true; };
  for_each_hot_page(source, source + size, note);
  for_each_hot_page(target, target + size, note);
  if (!is_any_hot)
    return;
  const bool backwards = source < target && target < source + size;
  const uint64_t last = (size - 1) & ~3ULL;
  for (uint64_t done = 0; done <= last; done += ASSAY_WORD_BYTES) {
    const uint64_t at = backwards ? last - done : done;
    if (is_hot_page(source + at) || is_hot_page(target + at)) {
      set_hot_units(target + at, hot_units(source + at));
      continue;
    }
    const uint64_t in_source = (source + at) % kPage, in_target = (target + at) % kPage;
    const uint64_t left = // of the page of either that ends first
        backwards ? (in_source < in_target ? in_source : in_target)
                  : kPage - 1 - (in_source > in_target ? in_source : in_target);
    done += left & ~3ULL;
  }
}

// Of these bytes of the shadow those that `which` names.
void mark_missing(uint64_t at, unsigned which) {
  const auto marked = (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)at));
  for (unsigned left = ~marked & which; left; left &= left - 1)
    *(volatile uint8_t *)(at + (unsigned)__builtin_ctz(left)) |= ASSAY_WORD_TOUCHED;
}

void mark_bytes(uint64_t at, uint64_t end) { // of the shadow
  for (; end - at > 16; at += 16)
    mark_missing(at, 0xffff);
  if (at % kPage <=
      kPage -
          16) { // most ranges are short, and end here; what is read beyond them is of the same page
    mark_missing(at, (1U << (end - at)) - 1);
    return;
  }
  for (; at < end; at++)
    if (!(*(volatile uint8_t *)at & ASSAY_WORD_TOUCHED))
      *(volatile uint8_t *)at |= ASSAY_WORD_TOUCHED;
}

void mark_bits(uint64_t start, uint64_t end) {
  while (start < end) {
    uint64_t in_byte = start % 8, bytes = 8 - in_byte;
    bytes = bytes < end - start ? bytes : end - start;
    auto bits = (uint8_t)(bits_below(bytes) << in_byte);
    auto *byte = (uint8_t *)place_of(start);
    if ((*byte & bits) != bits)
      __atomic_fetch_or(byte, bits, __ATOMIC_RELAXED);
    start += bytes;
  }
}

// A word whose samples fill its byte: a part of them goes into the table. `at` is its byte.
void make_room(uint8_t *at, uint64_t address) {
  Locked locked(hot_lock);
  uint8_t full = 0xff;
  if (__atomic_load_n(at, __ATOMIC_RELAXED) != full)
    return;
  bool kept = add_hot_unit(address);
  if (!kept)
    count_loss(ASSAY_LOSS_hot_words, 1);
  uint8_t left = kept ? (uint8_t)(0xff - kSamplesOfHotUnit) : ASSAY_WORD_SAMPLES;
  __atomic_compare_exchange_n(at, &full, left, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void sample_eight(uint64_t *eight, uint64_t address) {
  uint64_t old = __atomic_load_n(eight, __ATOMIC_RELAXED), fresh;
  do {
    if (is_locality()) {
      if (!old)
        return;
      fresh = old >> 1 & ~kMarks;
      continue;
    }
    if (!(old & kMarks))
      return;
    for (unsigned i = 0; i < 8; i++)
      if ((uint8_t)(old >> (8 * i)) == 0xff)
        make_room((uint8_t *)eight + i, address + i * ASSAY_WORD_BYTES);
    old = __atomic_load_n(eight, __ATOMIC_RELAXED);
    fresh = (old & ~kMarks) + ((old & kMarks) >> 7);
    if (fresh & kMarks) // one became full just now
      fresh = old;
  } while (
      !__atomic_compare_exchange_n(eight, &old, fresh, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void sample_counter(uint32_t *counter, uint64_t address) {
  if (__atomic_load_n(counter, __ATOMIC_RELAXED) < kAccessesOfHotUnit)
    return;
  Locked locked(hot_lock);
  if (!add_hot_unit(address))
    count_loss(ASSAY_LOSS_hot_words, 1);
  else
    __atomic_fetch_sub(counter, (uint32_t)kAccessesOfHotUnit, __ATOMIC_RELAXED);
}

// Where the kernel puts the mappings of this program.
bool lies_as_usual() {
  long at = sys::map(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (sys::failed(at))
    return true;
  sys::unmap((void *)at, kPage);
  return (uint64_t)at >= ASSAY_HIGH_BEGIN || (uint64_t)at < ASSAY_LOW_END;
}

void map_words_on_touch() {
  const uint64_t begin = form.base, end = form.base + assay_words_span(form);
  // A program with an unlimited stack has its mappings below a sixth of the address space.
  constexpr uint64_t kMappingsBegin = ASSAY_UNLIMITED_BEGIN, kMappingsEnd = 0x155560000000;
  map_on_touch(begin, begin < kMappingsBegin ? kMappingsBegin : begin);
  map_on_touch(kMappingsEnd, end);
}

bool is_laid_out_oddly;

} // namespace

bool map_words() {
  form = assay_word_encoding(units.mode);
  __assay_words_base = form.base;
  // As many bytes as with this shift: counters are folded to them.
  const unsigned shift = is_counters() ? 3 : (unsigned)form.shift;
  is_laid_out_oddly = !lies_as_usual();
  if (!is_laid_out_oddly && reserve_shadow(shift, form.base))
    return create_hot_words();
  map_words_on_touch();
  void *elsewhere = units.has_fixed_base ? nullptr : reserve(assay_words_span(form));
  if (elsewhere) {
    __assay_words_base = (uint64_t)elsewhere;
    return create_hot_words();
  }
  return false;
}

AssayLossKind why_no_words() {
  return is_laid_out_oddly ? ASSAY_LOSS_no_words : ASSAY_LOSS_no_shadow;
}

bool words_are_elsewhere() {
  return __assay_words_base != form.base;
}

void reset_words_in_child() {
  if (words_are_elsewhere())
    empty_span((void *)__assay_words_base, assay_words_span(form));
  else
    empty_shadow(is_counters() ? 3 : (unsigned)form.shift, form.base);
  reset_hot_words_in_child();
}

bool have_words(uint64_t begin, uint64_t end) {
  if (words_are_elsewhere())
    return end <= ASSAY_HIGH_END;
  return end <= ASSAY_LOW_END || (begin >= ASSAY_HIGH_BEGIN && end <= ASSAY_HIGH_END);
}

uint64_t unit_bytes() {
  return form.unit_bytes;
}

void touch_words(const void *start, uint64_t bytes) {
  uint64_t begin = (uint64_t)start, end = begin + bytes;
  if (bytes == 0 || end < begin || end > ASSAY_HIGH_END)
    return;
  if (is_bits()) {
    mark_bits(begin, end);
  } else if (is_counters()) {
    for (uint64_t at = begin & ~3ULL; at < end; at += ASSAY_WORD_BYTES)
      *(uint32_t *)place_of(at) += 1;
  } else {
    mark_bytes(place_of(begin), place_of(end - 1) + 1);
  }
}

void for_each_used_line(const void *start, uint64_t size,
                        void (*f)(void *context, const LineUnits &line), void *context) {
  const uint64_t begin = (uint64_t)start, end = begin + size;
  if (size == 0)
    return;
  const Shadow shadow = shadow_of(begin, size);
  auto call = [&](const LineUnits &line) { f(context, line); };
  if (shadow.bytes() < kScanBytes) {
    each_used_line(begin, end, begin, end, call);
    return;
  }
  const uint64_t first_line = begin & ~63ULL, first_place = place_of(first_line);
  for_each_touched(page_down(shadow.first), page_up(shadow.end), [&](uint64_t from, uint64_t to) {
    uint64_t from_line =
        from <= first_place ? first_line : first_line + ((from - first_place) << form.shift);
    uint64_t to_line = first_line + ((to - first_place) << form.shift);
    each_used_line(from_line, to_line < end ? to_line : end, begin, end, call);
  });
}

const uint8_t *plain_words(uint64_t address) {
  return units.mode & ASSAY_WORDS_ENCODING ? nullptr : (const uint8_t *)place_of(address);
}

void clear_words(const void *start, uint64_t size) {
  if (size == 0)
    return;
  const uint64_t begin = (uint64_t)start;
  Shadow shadow = shadow_of(begin, size);
  clear_hot(begin, size);
  if (shadow.bytes() < kDropBytes) {
    if (is_bits())
      zero_bits(begin, size);
    else
      zero(shadow.first, shadow.end);
    return;
  }
  uint64_t from = page_up(shadow.first), to = page_down(shadow.end);
  if (sys::failed(sys::advise((void *)from, to - from, MADV_DONTNEED)))
    zero(from, to);
  zero(shadow.first, from);
  zero(to, shadow.end);
}

void move_words(const void *from, uint64_t from_size, const void *to, uint64_t to_size) {
  const uint64_t source = (uint64_t)from, target = (uint64_t)to;
  const uint64_t size = from_size < to_size ? from_size : to_size;
  if (source == target || size == 0)
    return;
  const Shadow s = shadow_of(source, size), t = shadow_of(target, size);
  const bool apart = source + from_size <= target || target + to_size <= source;
  if (apart)
    clear_words(to, to_size);
  if (!apart || s.bytes() < kScanBytes)
    __builtin_memmove((void *)t.first, (const void *)s.first, s.bytes());
  else
    for_each_touched(page_down(s.first), page_up(s.end), [&](uint64_t first, uint64_t end) {
      first = first > s.first ? first : s.first;
      end = end < s.end ? end : s.end;
      __builtin_memcpy((void *)(t.first + (first - s.first)), (const void *)first, end - first);
    });
  move_hot(source, size, target);
  if (apart) {
    clear_words(from, from_size);
    return;
  }
  if (source < target)
    clear_words(from, target - source);
  if (source + from_size > target + size)
    clear_words((void *)(target + size), source + from_size - (target + size));
}

void sample_words(uint64_t begin, uint64_t end) {
  if (is_bits() || begin >= end)
    return;
  const Shadow shadow = shadow_of(begin, end - begin);
  for_each_touched(page_down(shadow.first), page_up(shadow.end), [&](uint64_t from, uint64_t to) {
    from = from > shadow.first ? from : shadow.first & ~7ULL;
    to = to < shadow.end ? to : (shadow.end + 7) & ~7ULL;
    const uint64_t program = (begin & ~63ULL) - (place_of(begin & ~63ULL) << form.shift);
    if (is_counters()) {
      for (uint64_t at = from; at < to; at += ASSAY_WORD_BYTES)
        sample_counter((uint32_t *)at, program + at);
      return;
    }
    for (uint64_t at = from; at < to; at += 8)
      if (*(const volatile uint64_t *)at)
        sample_eight((uint64_t *)at, program + (at << form.shift));
  });
}

} // namespace assay::objects
