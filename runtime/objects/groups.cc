// Most objects are small and live shortly: one or two lines of the shadow are read, added to 16-bit sums of the newest
// objects, sixteen words at a time, and cleared. Cells are brought up to date once in 256 objects.

#include "runtime/objects/groups.h"

#include <emmintrin.h>

#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/pages.h"
#include "runtime/objects/hot_words.h"

namespace assay::objects {
namespace {

constexpr uint64_t kMaxPlainBytes = 1 << 20;
constexpr uint32_t kLargeCells = ASSAY_OBJECT_CELLS + ASSAY_LINE_BYTES; // with the positions

bool is_same(const GroupKey &a, const GroupKey &b) {
  return a.context == b.context && a.class_bytes == b.class_bytes &&
         a.free_context == b.free_context && a.kind == b.kind;
}

uint64_t hash_of(const GroupKey &key) {
  uint64_t x = ((uint64_t)key.context << 32 | (uint32_t)key.free_context) +
               key.class_bytes * 0xff51afd7ed558ccdULL + key.kind;
  return x * 0x9e3779b97f4a7c15ULL >> 32;
}

void fold_recent(Group &g) {
  if (!g.recent.objects)
    return;
  for (uint32_t i = 0; i < g.cell_count; i++) {
    g.cells[i].hotness += g.recent.hotness[i];
    g.cells[i].accessed += g.recent.accessed[i];
  }
  g.recent = {};
}

// Sums that stay by an entry of their own until there are no more cells than these: trailing zeros are not written.
void write(Group &g, uint64_t walk) {
  fold_recent(g);
  uint32_t count = g.cell_count;
  while (count && !g.cells[count - 1].accessed)
    count--;
  AssayObjectGroup record = {};
  record.walk = walk;
  record.kind = g.key.kind;
  record.context = (uint32_t)g.key.context;
  record.free_context = (uint32_t)g.key.free_context;
  record.cell_units = g.cell_units;
  record.encoding = units.mode & ASSAY_WORDS_ENCODING;
  record.class_bytes = g.key.class_bytes;
  record.sums = g.sums;
  runtime.file.append(ASSAY_RECORD_ObjectGroup, record, g.cells, count * sizeof(AssayWordCell));
}

void empty(Group &g) {
  for (uint32_t i = 0; i < g.cell_count; i++)
    g.cells[i] = {};
  g.sums = {};
  g.recent = {};
  g.key = {};
  g.cell_count = 0;
}

uint64_t lines_of(uint64_t start, uint64_t size) {
  return (start + size - 1) / ASSAY_LINE_BYTES - start / ASSAY_LINE_BYTES + 1;
}

void add_cell(AssayWordCell &cell, const LineUnits &line, uint32_t i) {
  cell.hotness += line.hotness[i];
  cell.accessed++;
  cell.again += line.again[i];
}

void add_line(Group &g, const LineUnits &line) {
  uint64_t hottest = 0, used = 0, hotness = 0;
  AssayWordCell *cells = g.cells + g.positions;
  const uint32_t cell_count = g.cell_count - g.positions;
  for (uint64_t left = line.used; left; left &= left - 1) {
    auto i = (uint32_t)__builtin_ctzll(left);
    const uint64_t unit = line.first + i;
    uint64_t cell = g.cell_units == 1 ? unit : unit / g.cell_units;
    add_cell(cells[cell < cell_count ? cell : cell_count - 1], line, i);
    if (g.positions)
      add_cell(g.cells[unit & (g.positions - 1)], line, i);
    hotness += line.hotness[i];
    hottest = line.hotness[i] > hottest ? line.hotness[i] : hottest;
    used++;
  }
  g.sums.used_units += used;
  g.sums.used_lines++;
  g.sums.line_units += line.count;
  g.sums.hotness += hotness;
  g.sums.wasted_byte_samples += (line.count * hottest - hotness) * unit_bytes();
}

struct LineSums {
  uint64_t hottest = 0, hotness = 0, used = 0;
};

void add_line_sums(Group &g, const LineSums &line, uint64_t units) {
  if (!line.used)
    return;
  g.sums.used_units += line.used;
  g.sums.used_lines++;
  g.sums.line_units += units;
  g.sums.hotness += line.hotness;
  g.sums.wasted_byte_samples += (units * line.hottest - line.hotness) * ASSAY_WORD_BYTES;
}

// The bytes of sixteen words, or of fewer, with zeros behind them.
class SixteenWords {
public:
  explicit SixteenWords(__m128i bytes)
      : samples_(_mm_add_epi8(_mm_and_si128(bytes, _mm_set1_epi8(ASSAY_WORD_SAMPLES)),
                              _mm_and_si128(_mm_srli_epi16(bytes, 7), _mm_set1_epi8(1)))),
        is_unused_(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())) {}

  __m128i samples() const { return samples_; }                                // of each
  __m128i ones() const { return _mm_add_epi8(_mm_set1_epi8(1), is_unused_); } // 1 where it is used
  unsigned used() const { return (unsigned)_mm_movemask_epi8(is_unused_) ^ 0xffff; } // a bit each

  LineSums sums() const {
    auto sum_of = [](__m128i bytes) {
      const __m128i halves = _mm_sad_epu8(bytes, _mm_setzero_si128());
      return (uint64_t)_mm_cvtsi128_si64(halves) + (uint64_t)_mm_extract_epi16(halves, 4);
    };
    __m128i hottest = _mm_max_epu8(samples_, _mm_srli_si128(samples_, 8));
    hottest = _mm_max_epu8(hottest, _mm_srli_si128(hottest, 4));
    hottest = _mm_max_epu8(hottest, _mm_srli_si128(hottest, 2));
    hottest = _mm_max_epu8(hottest, _mm_srli_si128(hottest, 1));
    return {(uint8_t)_mm_cvtsi128_si32(hottest), sum_of(samples_), sum_of(ones())};
  }

private:
  __m128i samples_, is_unused_;
};

// Up to eight words, from that of this number on.
inline void add_words(Group &g, const uint8_t *bytes, uint64_t first, uint64_t count,
                      unsigned cell_shift, LineSums &sums) {
  for (uint64_t i = 0; i < count; i++) {
    if (!bytes[i])
      continue;
    const uint64_t samples = (bytes[i] & ASSAY_WORD_SAMPLES) + (bytes[i] >> 7);
    auto add = [samples](AssayWordCell &cell) {
      cell.hotness += samples;
      cell.accessed++;
    };
    const uint64_t cell = g.positions + ((first + i) >> cell_shift);
    add(g.cells[cell < g.cell_count ? cell : g.cell_count - 1]);
    if (g.positions)
      add(g.cells[(first + i) & (g.positions - 1)]);
    sums.hotness += samples;
    sums.hottest = samples > sums.hottest ? samples : sums.hottest;
    sums.used++;
  }
}

// Of a large object: by place in a line, 16 words at a time. Sums have 16 bits; a word adds 128 at
// most, so they hold for 256 lines.
class LinePositions {
public:
  explicit LinePositions(Group &g) : g_(g) {}
  ~LinePositions() { flush(); }
  void add(const SixteenWords &words) {
    const __m128i zero = _mm_setzero_si128(), samples = words.samples(), ones = words.ones();
    hotness_[0] = _mm_add_epi16(hotness_[0], _mm_unpacklo_epi8(samples, zero));
    hotness_[1] = _mm_add_epi16(hotness_[1], _mm_unpackhi_epi8(samples, zero));
    accessed_[0] = _mm_add_epi16(accessed_[0], _mm_unpacklo_epi8(ones, zero));
    accessed_[1] = _mm_add_epi16(accessed_[1], _mm_unpackhi_epi8(ones, zero));
    if (++lines_ == 256)
      flush();
  }

private:
  void flush() {
    if (!lines_)
      return;
    uint16_t hotness[16], accessed[16];
    for (unsigned half = 0; half < 2; half++) {
      _mm_storeu_si128((__m128i *)(hotness + 8 * half), hotness_[half]);
      _mm_storeu_si128((__m128i *)(accessed + 8 * half), accessed_[half]);
      hotness_[half] = accessed_[half] = _mm_setzero_si128();
    }
    for (unsigned i = 0; i < 16; i++) {
      g_.cells[i].hotness += hotness[i];
      g_.cells[i].accessed += accessed[i];
    }
    lines_ = 0;
  }

  Group &g_;
  __m128i hotness_[2] = {}, accessed_[2] = {};
  unsigned lines_ = 0;
};

// A whole line of a large object, from the word of this number on, which is one of 16.
inline void add_whole_line(Group &g, const uint8_t *bytes, uint64_t first, unsigned cell_shift,
                           LinePositions &positions, LineSums &sums) {
  const SixteenWords words(_mm_loadu_si128((const __m128i *)bytes));
  if (!words.used())
    return;
  sums = words.sums();
  positions.add(words);
  auto cell_of = [&](uint64_t word) -> AssayWordCell & {
    const uint64_t cell = g.positions + (word >> cell_shift);
    return g.cells[cell < g.cell_count ? cell : g.cell_count - 1];
  };
  if (cell_shift >= 4) {
    cell_of(first).hotness += sums.hotness;
    cell_of(first).accessed += sums.used;
    return;
  }
  uint8_t each[16];
  _mm_storeu_si128((__m128i *)each, words.samples());
  for (unsigned left = words.used(); left; left &= left - 1) {
    const auto i = (unsigned)__builtin_ctz(left);
    cell_of(first + i).hotness += each[i];
    cell_of(first + i).accessed++;
  }
}

// Of at most sixteen bytes of the shadow those that are the object's.
__m128i load_words(const uint8_t *bytes, uint64_t count) {
  static constexpr uint8_t kIsObjects[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                             255, 255, 255, 255, 255, 255, 255, 255};
  const __m128i is_objects = _mm_loadu_si128((const __m128i *)(kIsObjects + 16 - count));
  if ((uint64_t)bytes % kPage <= kPage - 16) // what is read beyond them is of the same page
    return _mm_and_si128(_mm_loadu_si128((const __m128i *)bytes), is_objects);
  uint8_t copy[16] = {};
  for (uint64_t i = 0; i < count; i++)
    copy[i] = bytes[i];
  return _mm_loadu_si128((const __m128i *)copy);
}

// A small object whose words are bytes, none of them hot.
void add_small(Group &g, const uint8_t *words, uint64_t first, uint64_t end) {
  const __m128i zero = _mm_setzero_si128();
  auto add = [](uint16_t *sums, __m128i more) {
    _mm_storeu_si128((__m128i *)sums, _mm_add_epi16(_mm_loadu_si128((const __m128i *)sums), more));
  };
  for (uint64_t word = first; word < end;) {
    const uint64_t line_end = (word | 15) + 1, stop = line_end < end ? line_end : end;
    const uint64_t at = word - first, count = stop - word;
    const SixteenWords line(load_words(words + at, count));
    if (line.used()) {
      const __m128i samples = line.samples(), ones = line.ones();
      add(g.recent.hotness + at, _mm_unpacklo_epi8(samples, zero));
      add(g.recent.accessed + at, _mm_unpacklo_epi8(ones, zero));
      if (count > 8) {
        add(g.recent.hotness + at + 8, _mm_unpackhi_epi8(samples, zero));
        add(g.recent.accessed + at + 8, _mm_unpackhi_epi8(ones, zero));
      }
      add_line_sums(g, line.sums(), count);
    }
    word = stop;
  }
  if (++g.recent.objects == RecentWords::kObjects)
    fold_recent(g);
}

// The same of an object whose words are bytes, none of them hot, and not so many that untouched
// pages matter: most objects. Words that nobody used are passed over eight at a time.
void add_plain(Group &g, const uint8_t *words, uint64_t start, uint64_t size) {
  const uint64_t first = start / ASSAY_WORD_BYTES, end = (start + size - 1) / ASSAY_WORD_BYTES + 1;
  if (g.cell_count <= kSmallWords + 1 && end - first <= g.cell_count) {
    add_small(g, words, first, end);
    return;
  }
  const auto cell_shift = (unsigned)__builtin_ctz(g.cell_units);
  const bool is_even = g.positions == 16 && first % 16 == 0;
  LinePositions positions(g);
  for (uint64_t word = first; word < end;) {
    const uint64_t line_end = (word | 15) + 1, stop = line_end < end ? line_end : end;
    LineSums line;
    const bool is_whole = is_even && stop - word == 16;
    if (is_whole)
      add_whole_line(g, words + (word - first), word - first, cell_shift, positions, line);
    for (uint64_t at = word; at < stop && !is_whole; at += 8) {
      const uint64_t count = stop - at < 8 ? stop - at : 8;
      const uint8_t *bytes = words + (at - first);
      uint64_t eight = 1;
      if (count == 8)
        __builtin_memcpy(&eight, bytes, 8);
      if (eight)
        add_words(g, bytes, at - first, count, cell_shift, line);
    }
    add_line_sums(g, line, stop - word);
    word = stop;
  }
}

bool may_be_hot(uint64_t start, uint64_t size) {
  bool any = false;
  for_each_hot_page(start, start + size, [&](uint64_t) { any = true; });
  return any;
}

} // namespace

bool GroupTable::create(uint32_t sets, uint32_t cells) {
  sets_ = sets;
  cells_ = cells;
  entry_bytes_ = (sizeof(Group) + cells * sizeof(AssayWordCell) + 63) & ~63ULL;
  locks_ = (Set *)reserve(sets * sizeof(Set));
  entries_ = (char *)reserve(sets * kWays * entry_bytes_);
  return locks_ && entries_;
}

Group *GroupTable::find(uint64_t set, const GroupKey &key, uint64_t walk) {
  Group *room = entry(set, 0);
  for (uint32_t way = 0; way < kWays; way++) {
    Group *g = entry(set, way);
    if (is_same(g->key, key)) {
      g->used_at = ++locks_[set].clock;
      return g;
    }
    if (room->key.kind && (!g->key.kind || (int32_t)(g->used_at - room->used_at) < 0))
      room = g;
  }
  if (room->key.kind) {
    write(*room, walk);
    empty(*room);
  }
  room->key = key;
  room->used_at = ++locks_[set].clock;
  room->cell_units = assay_cell_units(key.class_bytes, unit_bytes());
  room->positions = room->cell_units > 1 ? assay_line_positions(unit_bytes()) : 0;
  uint64_t cells = key.class_bytes / unit_bytes() / room->cell_units;
  // One more where objects do not begin on a unit.
  room->cell_count = room->positions + (uint32_t)(cells < ASSAY_OBJECT_CELLS ? cells + 1 : cells);
  if (room->cell_count > cells_)
    room->cell_count = cells_;
  locks_[set].used = true;
  return room;
}

template <typename F> void GroupTable::with(const GroupKey &key, uint64_t walk, F f) {
  const uint64_t set = hash_of(key) & (sets_ - 1);
  Locked locked(locks_[set].lock);
  f(*find(set, key, walk));
}

template <typename F> void GroupTable::each_used(F f) {
  for (uint64_t set = 0; set < sets_; set++)
    if (locks_[set].used) {
      Locked locked(locks_[set].lock);
      for (uint32_t way = 0; way < kWays; way++)
        if (entry(set, way)->key.kind)
          f(*entry(set, way));
      locks_[set].used = false;
    }
}

void GroupTable::write_all(uint64_t walk) {
  each_used([&](Group &g) {
    write(g, walk);
    empty(g);
  });
}

void GroupTable::clear() {
  each_used(empty);
}

void GroupTable::reset_in_child() {
  empty_span(locks_, sets_ * sizeof(Set));
  empty_span(entries_, sets_ * kWays * entry_bytes_);
}

bool Groups::create(uint32_t sets) {
  return small_.create(sets, kSmallWords + 1) && large_.create(sets / 4, kLargeCells + 1);
}

void Groups::add(uint32_t kind, ContextId context, ContextId free_context, const void *start,
                 uint64_t size, bool take, uint64_t walk) {
  const auto begin = (uint64_t)start;
  const GroupKey key = {kind, context, free_context, assay_size_class(size)};
  AssayObjectSums sums = {};
  sums.count = 1;
  sums.bytes = sums.size_min = sums.size_max = size;
  if (size) {
    sums.units = (begin + size - 1) / unit_bytes() - begin / unit_bytes() + 1;
    sums.lines = lines_of(begin, size);
  }
  sums.on_line = begin % ASSAY_LINE_BYTES == 0;
  const uint8_t *plain = size && size <= kMaxPlainBytes ? plain_words(begin) : nullptr;
  GroupTable &table = key.class_bytes <= kSmallWords * unit_bytes() ? small_ : large_;
  if (plain && !may_be_hot(begin, size)) {
    table.with(key, walk, [&](Group &g) {
      assay_object_sums_add(&g.sums, &sums);
      add_plain(g, plain, begin, size);
    });
    if (take)
      clear_words(start, size);
    return;
  }
  auto fold = [&] {
    table.with(key, walk, [&](Group &g) {
      assay_object_sums_add(&g.sums, &sums);
      for_each_used_line(start, size, [&](const LineUnits &line) { add_line(g, line); });
    });
    if (take)
      clear_words(start, size);
  };
  if (!may_be_hot(begin, size)) {
    fold();
    return;
  }
  Locked sampler_waits(hot_lock);
  fold();
}

void Groups::write_all(uint64_t walk) {
  small_.write_all(walk);
  large_.write_all(walk);
}

void Groups::clear() {
  small_.clear();
  large_.clear();
}

void Groups::reset_in_child() {
  small_.reset_in_child();
  large_.reset_in_child();
}

} // namespace assay::objects
