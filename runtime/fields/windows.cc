// A window's objects are few: a small table that is searched by address. At its end each object
// gives one set of leaves to the table of sets, which counts how often each set was met, and how
// often with a neighbour in memory in the same window (a sweep over an array). The last writer of
// each line is kept beside, for all threads together.
//
// Sets are bounded: programs have few shapes of use. When the table is full, new sets are left out
// and counted as a loss.

#include "runtime/fields/windows.h"

#include "abi/lines.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/thread.h"
#include "runtime/fields/records.h"
#include "runtime/fields/threads.h"

namespace assay::fields {
namespace {

constexpr uint64_t kSets = 1 << 14, kLines = 1 << 16, kPairs = 1 << 12, kOwnedLines = 1 << 12,
                   kRecords = 1 << 13; // powers of two
constexpr uint64_t kProbes = 64;
constexpr uint64_t kLine = 64;

struct SetSums {
  uint64_t record; // hash; 0: free
  uint64_t leaves[kMaxLeavesInWindow / 64];
  uint64_t count, adjacent;
  uint64_t written_count, written_adjacent;
};

// Says how far the sets of a record can be trusted (analyze/fields.cc).
struct RecordSums {
  uint64_t record; // hash; 0: free
  AssayFieldSampling sums, written;
  uint32_t round; // the last one that it was met in
};

// Who wrote to a line, and where its last write was.
struct LineWriter {
  uint64_t line; // number; 0: free
  uint64_t record, start;
  uint32_t leaf, thread;
  uint8_t first, last; // bytes of the line
  uint8_t is_shared;   // the element of an array is one that other threads write, too
  uint64_t threads;    // that have written to it: a bit each, by number modulo 64
};

// Which thread writes each element of arrays in a line: by the element's first byte, 16 * the
// thread's number + how many of the last writes to it were that thread's, up to 15.
struct ElementWriters {
  uint64_t line; // number; 0: free
  uint16_t of[kLine];
};

struct PairSums {
  uint64_t record, other_record; // hashes; 0: free
  uint32_t leaf, other_leaf;
  uint64_t same_object, count;
  uint64_t written_same, written_count;
};

struct {
  SpinLock lock;
  SetSums *sets;
  LineWriter *lines;
  ElementWriters *owners;
  PairSums *pairs;
  RecordSums *records;
} constinit sums = {};

bool create_sums() {
  if (sums.sets)
    return sums.lines && sums.owners && sums.pairs && sums.records;
  sums.sets = (SetSums *)reserve(kSets * sizeof(SetSums));
  sums.lines = (LineWriter *)reserve(kLines * sizeof(LineWriter));
  sums.owners = (ElementWriters *)reserve(kOwnedLines * sizeof(ElementWriters));
  sums.pairs = (PairSums *)reserve(kPairs * sizeof(PairSums));
  sums.records = (RecordSums *)reserve(kRecords * sizeof(RecordSums));
  return sums.sets && sums.lines && sums.owners && sums.pairs && sums.records;
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b << 7 | b >> 57)) * 0x9e3779b97f4a7c15ULL;
  return x ^ x >> 29;
}

WindowObject *object_at(Window &window, uint64_t record, uint64_t start) {
  for (uint64_t i = mix(record, start);; i++) {
    WindowObject &object = window.object[i % Window::kSlots];
    if (object.record == record && object.start == start)
      return &object;
    if (object.record)
      continue;
    if (window.objects >= Window::kSlots * 3 / 4)
      return nullptr;
    window.objects++;
    object.record = record;
    object.start = start;
    return &object;
  }
}

bool has_object(const Window &window, uint64_t record, uint64_t start) {
  for (uint64_t i = mix(record, start);; i++) {
    const WindowObject &object = window.object[i % Window::kSlots];
    if (!object.record)
      return false;
    if (object.record == record && object.start == start)
      return true;
  }
}

SetSums *set_of(const WindowObject &object) {
  uint64_t hash = object.record;
  for (uint64_t word : object.leaves)
    hash = mix(hash, word);
  for (uint64_t i = 0; i < kProbes; i++) {
    SetSums &set = sums.sets[(hash + i) % kSets];
    if (!set.record) {
      set.record = object.record;
      __builtin_memcpy(set.leaves, object.leaves, sizeof set.leaves);
    }
    if (set.record == object.record &&
        __builtin_memcmp(set.leaves, object.leaves, sizeof set.leaves) == 0)
      return &set;
  }
  return nullptr;
}

RecordSums *record_of(uint64_t hash) {
  for (uint64_t i = 0; i < kProbes; i++) {
    RecordSums &record = sums.records[(hash + i) % kRecords];
    if (!record.record)
      record.record = record.sums.record = record.written.record = hash;
    if (record.record == hash)
      return &record;
  }
  return nullptr;
}

PairSums *pair_of(const LineWriter &a, const LineWriter &b) {
  const bool swapped = a.record > b.record || (a.record == b.record && a.leaf > b.leaf);
  const LineWriter &first = swapped ? b : a, &other = swapped ? a : b;
  uint64_t hash = mix(mix(first.record, first.leaf), mix(other.record, other.leaf));
  for (uint64_t i = 0; i < kProbes; i++) {
    PairSums &pair = sums.pairs[(hash + i) % kPairs];
    if (!pair.record) {
      pair.record = first.record;
      pair.other_record = other.record;
      pair.leaf = first.leaf;
      pair.other_leaf = other.leaf;
    }
    if (pair.record == first.record && pair.leaf == first.leaf &&
        pair.other_record == other.record && pair.other_leaf == other.leaf)
      return &pair;
  }
  return nullptr;
}

// Under the lock. A line that two threads write in turn at the same bytes is shared on purpose; one that a thread
// takes for the first time is handed over, as objects are that one thread makes for another.
void note_write(LineWriter now) {
  LineWriter &last = sums.lines[mix(now.line, 0) % kLines];
  const uint64_t self = 1ULL << now.thread % 64;
  now.threads = (last.line == now.line ? last.threads : 0) | self;
  if (last.line == now.line && last.thread != now.thread && last.threads & self &&
      !last.is_shared && !now.is_shared && (now.last < last.first || last.last < now.first)) {
    if (PairSums *pair = pair_of(last, now)) {
      pair->count++;
      pair->same_object += last.record == now.record && last.start == now.start;
    }
  }
  if (last.line == now.line && last.thread == now.thread && last.record == now.record &&
      last.leaf == now.leaf && last.first == now.first && last.is_shared == now.is_shared)
    return;
  last = now; // another line that had this place is forgotten
}

// Under the lock. Whether this thread alone writes an element, as far as its last writes say. Elements that any thread
// writes, as those of a table are, are shared on purpose, however many others lie in their line.
bool is_own(uint64_t line, uint64_t byte, uint32_t thread) {
  ElementWriters &owners = sums.owners[mix(line, 0) % kOwnedLines];
  if (owners.line != line)
    owners = {line, {}};
  constexpr uint16_t kWrites = 12, kMaxCount = 15;
  const auto number = (uint16_t)(thread << 4);
  uint16_t &owner = owners.of[byte];
  if ((owner & ~kMaxCount) != number || !(owner & kMaxCount))
    owner = number;
  if ((owner & kMaxCount) < kMaxCount)
    owner++;
  return (owner & kMaxCount) >= kWrites;
}

// The first byte of an element stands for it.
void note_element(const Item &item, uint64_t address, const WindowObject &object) {
  Locked locked(sums.lock);
  const uint64_t line = address / kLine;
  const auto byte = (uint8_t)(address % kLine);
  const bool is_shared = !is_own(line, byte, thread_number());
  note_write(
      {line, item.record, object.start, item.first, thread_number(), byte, byte, is_shared, 0});
}

struct Adding {
  Window *window;
  const void *const *bases;
};

void note_writes(const Item &item, const WindowObject &object) {
  const RecordLayout *record = find_record(item.record);
  if (!record)
    return;
  Locked locked(sums.lock);
  for (uint32_t leaf = item.first; leaf <= item.first + item.more && leaf < record->leaves;
       leaf++) {
    const LeafPlace &place = record->places[leaf];
    uint64_t begin = object.start + place.offset;
    if (!place.bytes || begin / kLine != (begin + place.bytes - 1) / kLine)
      continue;
    note_write({begin / kLine, item.record, object.start, leaf, thread_number(),
                (uint8_t)(begin % kLine), (uint8_t)((begin + place.bytes - 1) % kLine), false, 0});
  }
}

void add_item(const Item &item, void *data) {
  auto *adding = (Adding *)data;
  const void *base = item.base < ASSAY_MAX_BASES ? adding->bases[item.base] : nullptr;
  if (!base)
    return;
  WindowObject *object =
      object_at(*adding->window, item.record, (uint64_t)base + (uint64_t)item.start);
  if (!object)
    return;
  for (uint32_t leaf = item.first; leaf <= item.first + item.more && leaf < kMaxLeavesInWindow;
       leaf++)
    object->leaves[leaf / 64] |= 1ULL << leaf % 64;
  if (object->last != adding->window->stretches + 1) {
    object->last = adding->window->stretches + 1;
    object->stretches++;
  }
  if (item.writes && !item.element)
    note_writes(item, *object);
  else if (item.writes && item.element <= ASSAY_MAX_BASES)
    if (const void *element = adding->bases[item.element - 1])
      note_element(item, (uint64_t)element, *object);
}

void write_set(ProfileFile &to, const SetSums &set, uint64_t count, uint64_t adjacent) {
  uint8_t leaves[kMaxLeavesInWindow * 2];
  uint8_t *end = leaves;
  uint32_t next = 0;
  for (uint32_t leaf = 0; leaf < kMaxLeavesInWindow; leaf++)
    if (set.leaves[leaf / 64] >> leaf % 64 & 1) {
      end = assay_put_number(end, leaf - next);
      next = leaf + 1;
    }
  to.append(ASSAY_RECORD_FieldSet, AssayFieldSet{set.record, ASSAY_SET_WINDOW, 0, count, adjacent},
            leaves, (size_t)(end - leaves));
}

void write_pair(ProfileFile &to, const PairSums &pair, uint64_t same, uint64_t count) {
  to.append(ASSAY_RECORD_FieldSharing, AssayFieldSharing{pair.record, pair.other_record, pair.leaf,
                                                         pair.other_leaf, same, count});
}

} // namespace

bool add_stretch(Window &window, const UnitEntry &entry, const uint32_t *index, uint64_t stretch,
                 const void *const *bases) {
  Adding adding = {&window, bases};
  if (create_sums())
    each_item(entry, index, stretch, add_item, &adding);
  if (++window.stretches < kStretchesOfWindow)
    return false;
  uint32_t windows = window.windows + 1;
  close_window(window);
  window.windows = windows % kWindowsInRow;
  return windows == kWindowsInRow;
}

void close_window(Window &window) {
  const uint64_t weight = weight_of_round();
  const uint32_t round = number_of_round();
  Locked locked(sums.lock);
  for (const WindowObject &object : window.object) {
    if (!object.record)
      continue;
    const RecordLayout *record = find_record(object.record);
    uint64_t size = record ? record->size : 0;
    SetSums *set = set_of(object);
    RecordSums *sampling = record_of(object.record);
    if (!set || !sampling) {
      count_loss(ASSAY_LOSS_full_sets, 1);
      continue;
    }
    set->count += weight;
    if (size && (has_object(window, object.record, object.start + size) ||
                 has_object(window, object.record, object.start - size)))
      set->adjacent += weight;
    sampling->sums.visits++;
    sampling->sums.stretches += object.stretches;
    if (sampling->round != round) {
      sampling->round = round;
      sampling->sums.rounds++;
    }
  }
  __builtin_memset(&window, 0, sizeof window);
}

void write_windows() {
  Locked locked(sums.lock);
  for (uint64_t i = 0; sums.sets && i < kSets; i++) {
    SetSums &set = sums.sets[i];
    if (set.count == set.written_count)
      continue;
    write_set(runtime.file, set, set.count - set.written_count,
              set.adjacent - set.written_adjacent);
    set.written_count = set.count;
    set.written_adjacent = set.adjacent;
  }
  for (uint64_t i = 0; sums.pairs && i < kPairs; i++) {
    PairSums &pair = sums.pairs[i];
    if (pair.count == pair.written_count)
      continue;
    write_pair(runtime.file, pair, pair.same_object - pair.written_same,
               pair.count - pair.written_count);
    pair.written_same = pair.same_object;
    pair.written_count = pair.count;
  }
  for (uint64_t i = 0; sums.records && i < kRecords; i++) {
    RecordSums &record = sums.records[i];
    if (record.sums.visits == record.written.visits)
      continue;
    runtime.file.append(ASSAY_RECORD_FieldSampling,
                        AssayFieldSampling{record.record,
                                           record.sums.rounds - record.written.rounds,
                                           record.sums.visits - record.written.visits,
                                           record.sums.stretches - record.written.stretches});
    record.written = record.sums;
  }
}

void write_all_windows(ProfileFile &to) {
  Locked locked(sums.lock);
  for (uint64_t i = 0; sums.sets && i < kSets; i++)
    if (sums.sets[i].written_count)
      write_set(to, sums.sets[i], sums.sets[i].written_count, sums.sets[i].written_adjacent);
  for (uint64_t i = 0; sums.pairs && i < kPairs; i++)
    if (sums.pairs[i].written_count)
      write_pair(to, sums.pairs[i], sums.pairs[i].written_same, sums.pairs[i].written_count);
  for (uint64_t i = 0; sums.records && i < kRecords; i++)
    if (sums.records[i].written.visits)
      to.append(ASSAY_RECORD_FieldSampling, sums.records[i].written);
}

void drop_windows() {
  Locked locked(sums.lock);
  if (sums.sets)
    empty_span(sums.sets, kSets * sizeof(SetSums));
  if (sums.pairs)
    empty_span(sums.pairs, kPairs * sizeof(PairSums));
  if (sums.records)
    empty_span(sums.records, kRecords * sizeof(RecordSums));
}

void reset_windows_in_child() {
  sums.lock.reset();
  if (sums.sets)
    empty_span(sums.sets, kSets * sizeof(SetSums));
  if (sums.lines)
    empty_span(sums.lines, kLines * sizeof(LineWriter));
  if (sums.owners)
    empty_span(sums.owners, kOwnedLines * sizeof(ElementWriters));
  if (sums.pairs)
    empty_span(sums.pairs, kPairs * sizeof(PairSums));
  if (sums.records)
    empty_span(sums.records, kRecords * sizeof(RecordSums));
}

} // namespace assay::fields
