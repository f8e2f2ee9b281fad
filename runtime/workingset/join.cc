// Nothing is numbered anew: a snapshot is named by its ticks, which stay, so that what other threads append
// meanwhile is as right before as after.
//
// A record of lines is joined by itself: of planes that fall into one snapshot now, the lines of either. A
// snapshot whose two halves lie in two records has them in both, and readers add up. Of owners of a line
// within one snapshot the last one stays.

#include "runtime/workingset/join.h"

#include "runtime/core/arena.h"
#include "runtime/core/file_records.h"
#include "runtime/core/key_table.h"
#include "runtime/core/runtime.h"
#include "runtime/core/syscall.h"
#include "runtime/workingset/records.h"

namespace assay::workingset {
namespace {

constinit uint64_t joined_ticks = 1;

// The snapshot of joined_ticks that a tick falls into: the number of its first tick.
uint64_t joined(uint64_t tick) {
  return (tick - 1) / joined_ticks * joined_ticks + 1;
}

class Numbers {
public:
  Numbers(const uint8_t *at, size_t size) : at_(at), end_(at + size) {}
  bool more() const { return at_ < end_; }
  uint64_t number() {
    uint64_t n = 0;
    for (unsigned shift = 0; at_ < end_ && shift < 64; shift += 7) {
      n |= (uint64_t)(*at_ & 127) << shift;
      if (*at_++ < 128)
        break;
    }
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
  uint64_t first, count, context;
};

template <typename F> void each_run(const FileRecord &r, F f) {
  Numbers in(r.tail, r.tail_size);
  for (uint64_t first = 0; in.more();) {
    first += in.number();
    uint64_t count = in.number(), context = in.number();
    f(Run{first, count, context});
  }
}

// Which run of a snapshot is the last with its lines: run number by a key of both, in a table that
// forgets nothing until it is full; then all runs stay.
class LastRuns {
public:
  bool create() { return (slots_ = (Slot *)reserve(kSlots * sizeof(Slot))) != nullptr; }
  ~LastRuns() {
    if (slots_)
      sys::unmap(slots_, kSlots * sizeof(Slot));
  }
  LastRuns() = default;
  LastRuns(const LastRuns &) = delete;
  LastRuns &operator=(const LastRuns &) = delete;

  void note(uint64_t tick, const Run &run, uint64_t number) {
    if (Slot *slot = slot_of(tick, run))
      slot->number = number;
  }
  bool is_last(uint64_t tick, const Run &run, uint64_t number) {
    Slot *slot = slot_of(tick, run);
    return !slot || slot->number == number;
  }

private:
  struct Slot {
    uint64_t key, number;
  };
  static constexpr uint64_t kSlots = 1 << 24;
  static constexpr uint64_t kProbes = 64; // beyond that it is too full to be worth it
  Slot *slot_of(uint64_t tick, const Run &run) {
    uint64_t h = (joined(tick) * 0x9e3779b97f4a7c15ULL ^ run.first) * 0xd6e8feb86659fd93ULL;
    h = (h ^ h >> 32 ^ run.count) * 0x9e3779b97f4a7c15ULL;
    return find<Slot, kSlots, kProbes>(slots_, h ^ h >> 32);
  }
  Slot *slots_ = nullptr;
};

struct {
  LinesRecord lines;
  OwnersRecord owners;
} constinit out = {};

void join_lines(const FileRecord &r, ProfileFile &to) {
  auto old = r.as<AssayWorkingSetLines>();
  uint64_t count = old.count < kMostPlanes ? old.count : kMostPlanes;
  uint64_t first = joined(old.tick);
  uint64_t last = joined(old.tick + (count - 1) * old.ticks);
  out.lines.begin(to, first, joined_ticks, (uint32_t)((last - first) / joined_ticks + 1));
  Numbers in(r.tail, r.tail_size);
  for (uint64_t group = 0; in.more();) {
    group += in.number();
    uint64_t repeats = in.number(), plane = 0, planes[kMostPlanes] = {};
    uint8_t changed = in.byte();
    for (uint64_t i = 0; i < count; i++) {
      if (changed >> i & 1)
        plane = in.word();
      planes[(joined(old.tick + i * old.ticks) - first) / joined_ticks] |= plane;
    }
    for (uint64_t i = 0; i <= repeats; i++)
      out.lines.add(group + i, planes);
    group += repeats;
  }
  out.lines.end();
}

} // namespace

void set_joined_ticks(uint64_t ticks) {
  joined_ticks = ticks;
}

bool join_snapshots(const uint8_t *from, size_t size, ProfileFile &to) {
  LastRuns last;
  if (!last.create())
    return false;
  uint64_t noted = 0, taken = 0;
  bool good = each_record(from, size, [&](const FileRecord &r) {
    if (r.header.kind == ASSAY_RECORD_WorkingSetOwners)
      each_run(
          r, [&](const Run &run) { last.note(r.as<AssayWorkingSetOwners>().tick, run, noted++); });
    return true;
  });
  AssayWorkingSetSnapshot left = {}; // waits for its other half
  auto copy = [&](const FileRecord &r) {
    to.append_bytes((AssayRecordKind)r.header.kind, r.fixed, r.header.fixed_size, r.tail,
                    r.tail_size);
  };
  return good && each_record(from, size, [&](const FileRecord &r) {
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
             if (left.tick + left.ticks == joined(left.tick) + joined_ticks) { // whole
               to.append(ASSAY_RECORD_WorkingSetSnapshot, left, r.tail, r.tail_size);
               left = {};
             }
           } else if (r.header.kind == ASSAY_RECORD_WorkingSetLines) {
             join_lines(r, to);
           } else if (r.header.kind == ASSAY_RECORD_WorkingSetOwners) {
             uint64_t tick = r.as<AssayWorkingSetOwners>().tick;
             out.owners.begin(to, tick);
             each_run(r, [&](const Run &run) {
               if (last.is_last(tick, run, taken++))
                 out.owners.add(run.first, run.count, (uint32_t)run.context);
             });
             out.owners.end();
           } else {
             copy(r);
           }
           return true;
         });
}

} // namespace assay::workingset
