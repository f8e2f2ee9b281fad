// Nothing is numbered anew: a snapshot is named by its ticks, which stay, so that what other threads append
// meanwhile is as right before as after.
//
// Of planes that fall into one snapshot now, the lines of either stay. Batches of lines that follow each other
// become one, as long as their snapshots fit into one: so the file becomes shorter each time, however old
// its batches are. A snapshot may lie in two batches all the same, and readers add up. Of owners of a line
// within one snapshot the last one stays.

#include "runtime/workingset/coalesce.h"

#include "runtime/core/file/file_records.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/key_table.h"
#include "runtime/core/system/syscall.h"
#include "runtime/workingset/records.h"

namespace assay::workingset {
namespace {

constinit uint64_t coalesced_ticks = 1;

// The snapshot of coalesced_ticks that a tick falls into: the number of its first tick.
uint64_t joined(uint64_t tick) {
  return (tick - 1) / coalesced_ticks * coalesced_ticks + 1;
}

class Numbers {
public:
  Numbers(const uint8_t *at, size_t size) : at_(at), end_(at + size) {}
  bool more() const { return at_ < end_; }
  uint64_t number() {
    uint64_t n;
    const uint8_t *after = assay_get_number(at_, end_, &n);
    at_ = after ? after : end_; // what this process wrote is whole
    return n;
  }
  uint8_t byte() { return at_ < end_ ? *at_++ : 0; }
  uint64_t word() {
    uint64_t w = 0;
    if ((size_t)(end_ - at_) >= sizeof w)
      __builtin_memcpy(&w, at_, sizeof w);
    at_ = (size_t)(end_ - at_) >= sizeof w ? at_ + sizeof w : end_;
    return w;
  }

private:
  const uint8_t *at_, *end_;
};

struct Run {
  uint64_t first, count;
  ContextId context;
};

template <typename F> void each_run(const FileRecord &r, F f) {
  Numbers in(r.tail, r.tail_size);
  for (uint64_t first = 0; in.more();) {
    first += in.number();
    uint64_t count = in.number();
    f(Run{first, count, ContextId{(uint32_t)in.number()}});
  }
}

// Which run of a snapshot is the last with its lines: run number by a key of both. Where a snapshot has too
// many, all stay.
class LastRuns {
public:
  bool create() { return (slots_ = (Slot *)reserve(kMax * sizeof(Slot))) != nullptr; }
  ~LastRuns() {
    if (slots_)
      sys::unmap(slots_, kMax * sizeof(Slot));
  }
  LastRuns() = default;
  LastRuns(const LastRuns &) = delete;
  LastRuns &operator=(const LastRuns &) = delete;

  // Notes all runs of the snapshot that the record's tick falls into; r is the first of its records.
  void note_snapshot(const FileRecord &r, const uint8_t *end) {
    __builtin_memset(slots_, 0, count_ * sizeof(Slot)); // giving it back would interrupt other cpus
    uint64_t bytes = 0;
    each_of_snapshot(r, end, [&](const FileRecord &of_it) { bytes += of_it.tail_size; });
    for (count_ = kFewest; count_ < bytes && count_ < kMax;) // a run takes three bytes or more
      count_ *= 2;
    each_of_snapshot(r, end, [&](const FileRecord &of_it) {
      each_run(of_it, [&](const Run &run) {
        if (Slot *slot = slot_of(run))
          slot->number = noted_;
        noted_++;
      });
    });
  }
  bool is_last(const Run &run, uint64_t number) {
    Slot *slot = slot_of(run);
    return !slot || slot->number == number;
  }

private:
  struct Slot {
    uint64_t key, number;
  };
  static constexpr uint64_t kFewest = 1 << 10, kMax = 1 << 18;
  static constexpr uint64_t kProbes = 64; // beyond that it is too full to be worth it

  // Records of owners of one snapshot follow each other, with other records between.
  template <typename F> static void each_of_snapshot(const FileRecord &r, const uint8_t *end, F f) {
    const uint8_t *rest = r.fixed - sizeof r.header;
    const uint64_t snapshot = joined(r.as<AssayWorkingSetOwners>().tick);
    for (FileRecord next; take_record(rest, end, next);) {
      if (next.header.kind != ASSAY_RECORD_WorkingSetOwners)
        continue;
      if (joined(next.as<AssayWorkingSetOwners>().tick) != snapshot)
        return;
      f(next);
    }
  }
  Slot *slot_of(const Run &run) {
    uint64_t h = run.first * 0xd6e8feb86659fd93ULL;
    h = (h ^ h >> 32 ^ run.count) * 0x9e3779b97f4a7c15ULL;
    return find(slots_, count_, h ^ h >> 32, kProbes);
  }
  Slot *slots_ = nullptr;
  uint64_t count_ = 0, noted_ = 0;
};

struct {
  LinesRecord lines;
  OwnersRecord owners;
} constinit out = {};

// The groups of a batch, which goes on in every record that has the same fixed part and follows.
class Batch {
public:
  Batch() = default;
  Batch(const FileRecord &r, const uint8_t *end)
      : fixed_(r.as<AssayWorkingSetLines>()), in_(r.tail, r.tail_size),
        rest_(r.tail + r.tail_size + assay_padding(r.header.length)), end_(end) {}

  static bool same(const AssayWorkingSetLines &a, const AssayWorkingSetLines &b) {
    return a.tick == b.tick && a.ticks == b.ticks && a.count == b.count;
  }
  uint64_t group() const { return group_; }
  bool next();
  // Adds the lines of the group to planes that begin with the snapshot of this tick.
  void add_to(uint64_t *planes, uint64_t first) const {
    for (uint64_t i = 0; i < count(fixed_); i++)
      planes[(joined(fixed_.tick + i * fixed_.ticks) - first) / coalesced_ticks] |= planes_[i];
  }
  static uint64_t count(const AssayWorkingSetLines &fixed) {
    return fixed.count < kMaxPlanes ? fixed.count : kMaxPlanes;
  }

private:
  bool go_on();
  AssayWorkingSetLines fixed_ = {};
  Numbers in_ = {nullptr, 0};
  const uint8_t *rest_ = nullptr, *end_ = nullptr;
  uint64_t group_ = 0, repeats_ = 0;
  uint64_t planes_[kMaxPlanes] = {};
};

bool Batch::next() {
  if (repeats_) {
    repeats_--;
    group_++;
    return true;
  }
  if (!in_.more() && !go_on())
    return false;
  group_ += in_.number();
  repeats_ = in_.number();
  uint64_t plane = 0;
  uint8_t changed = in_.byte();
  for (uint64_t i = 0; i < count(fixed_); i++)
    planes_[i] = plane = changed >> i & 1 ? in_.word() : plane;
  return true;
}

bool Batch::go_on() {
  for (FileRecord r; take_record(rest_, end_, r);)
    if (r.header.kind == ASSAY_RECORD_WorkingSetLines) {
      if (!same(r.as<AssayWorkingSetLines>(), fixed_))
        return false;
      in_ = Numbers(r.tail, r.tail_size);
      group_ = 0;
      return in_.more();
    }
  return false;
}

// Batches that are to become one.
class Batches {
public:
  // A record of lines: begins a batch, or goes on with the last one.
  void take(const FileRecord &r, const uint8_t *end, ProfileFile &to) {
    auto fixed = r.as<AssayWorkingSetLines>();
    if (any_ && Batch::same(fixed, newest_))
      return;
    any_ = true;
    newest_ = fixed;
    uint64_t first = joined(fixed.tick);
    uint64_t last = joined(fixed.tick + (Batch::count(fixed) - 1) * fixed.ticks);
    if (waiting_ == kMax || first < first_ || (last - first_) / coalesced_ticks >= kMaxPlanes)
      write(to);
    if (waiting_ == 0)
      first_ = last_ = first;
    last_ = last > last_ ? last : last_;
    batches_[waiting_++] = Batch(r, end);
  }

  void write(ProfileFile &to) {
    if (!waiting_)
      return;
    out.lines.begin(to, first_, coalesced_ticks,
                    (uint32_t)((last_ - first_) / coalesced_ticks + 1));
    bool more[kMax];
    for (uint32_t i = 0; i < waiting_; i++)
      more[i] = batches_[i].next();
    for (;;) {
      uint64_t group = ~0ULL, planes[kMaxPlanes] = {};
      for (uint32_t i = 0; i < waiting_; i++)
        if (more[i] && batches_[i].group() < group)
          group = batches_[i].group();
      if (group == ~0ULL)
        break;
      for (uint32_t i = 0; i < waiting_; i++)
        if (more[i] && batches_[i].group() == group) {
          batches_[i].add_to(planes, first_);
          more[i] = batches_[i].next();
        }
      out.lines.add(group, planes);
    }
    out.lines.end();
    waiting_ = 0;
  }

private:
  static constexpr uint32_t kMax = 16;
  Batch batches_[kMax];
  uint32_t waiting_ = 0;
  uint64_t first_ = 0, last_ = 0; // snapshots of those that wait, by their ticks
  bool any_ = false;
  AssayWorkingSetLines newest_ = {};
};

} // namespace

void set_coalesced_ticks(uint64_t ticks) {
  coalesced_ticks = ticks;
}

bool coalesce_snapshots(const uint8_t *from, size_t size, ProfileFile &to) {
  LastRuns last;
  if (!last.create())
    return false;
  uint64_t taken = 0, owned = 0;     // runs; the snapshot of the last ones
  AssayWorkingSetSnapshot left = {}; // waits for its other half
  Batches batches;
  auto copy = [&](const FileRecord &r) { to.copy(r); };
  bool good = each_record(from, size, [&](const FileRecord &r) {
    if (r.header.kind == ASSAY_RECORD_WorkingSetSnapshot) {
      auto snapshot = r.as<AssayWorkingSetSnapshot>();
      if (left.ticks && snapshot.tick == left.tick + left.ticks &&
          joined(snapshot.tick) == joined(left.tick)) {
        left.ticks += snapshot.ticks;
        left.end = snapshot.end;
        left.end_us = snapshot.end_us;
      } else {
        left = snapshot;
      }
      if (left.tick + left.ticks == joined(left.tick) + coalesced_ticks) { // whole
        to.append(ASSAY_RECORD_WorkingSetSnapshot, left, r.tail, r.tail_size);
        left = {};
      }
    } else if (r.header.kind == ASSAY_RECORD_WorkingSetLines) {
      batches.take(r, from + size, to);
    } else if (r.header.kind == ASSAY_RECORD_WorkingSetOwners) {
      uint64_t tick = r.as<AssayWorkingSetOwners>().tick;
      if (joined(tick) != owned)
        last.note_snapshot(r, from + size);
      owned = joined(tick);
      out.owners.begin(to, tick);
      each_run(r, [&](const Run &run) {
        if (last.is_last(run, taken++))
          out.owners.add(run.first, run.count, run.context);
      });
      out.owners.end();
    } else {
      copy(r);
    }
    return true;
  });
  batches.write(to);
  return good;
}

} // namespace assay::workingset
