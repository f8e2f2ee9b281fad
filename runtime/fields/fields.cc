// The fields tool in the process: it hears of modules and threads, and writes what was counted. The
// counting itself is in the program's code (compiler/fields_pass.cc).

#include "abi/fields.h"
#include "abi/sites.h"
#include "runtime/core/file/compaction.h"
#include "runtime/core/runtime.h"
#include "runtime/fields/records.h"
#include "runtime/fields/threads.h"
#include "runtime/fields/units.h"
#include "runtime/fields/windows.h"

namespace assay::fields {
namespace {

constexpr uint64_t kMaxShare = 50; // one part in so many of the time may go into summing up

constexpr uint64_t kFirstWait = 500, kLastWait = 10000; // microseconds between rounds of windows
constexpr uint32_t kFirstRounds = 32;                   // that are as dense as the first ones
constexpr uint64_t kMaxWeight =
    2 * kLastWait / kFirstWait;  // of a round: the process may have been stopped
constexpr uint64_t kRound = 300; // microseconds that a round takes at most

constinit uint64_t next_sum_us = 0;
constinit uint64_t last_round_us = 0, next_round_us = 0, round_wait_us = 0;
constinit uint32_t rounds_begun = 0;

void on_flush(FlushKind kind) {
  uint64_t begin = now_us();
  if (kind == FlushKind::kFlush && begin < next_sum_us)
    return;
  write_counts();
  write_windows();
  uint64_t end = now_us();
  next_sum_us = end + (end - begin) * kMaxShare;
}

void on_thread_start() {
  if (first_block())
    take_block();
}

// Threads that still run count where nobody looks any more.
void on_end() {
  forbid_rounds();
  write_counts();
  write_windows();
}

void on_module(const ModuleSites &sites) {
  add_records(sites);
  add_units(sites);
}

void on_reset() {
  drop_counts();
  drop_windows();
}

// On the helper thread. The first rounds come soon after each other, for short programs. Each
// counts as often as the time since the one before says: otherwise the beginning would be
// over-represented.
uint64_t on_poll() {
  uint64_t now = now_us();
  if (!first_block())
    return kFirstWait;
  end_round(); // of threads that had too little to report
  if (now < next_round_us)
    return next_round_us - now;
  uint64_t weight = last_round_us ? (now - last_round_us + kFirstWait / 2) / kFirstWait : 1;
  begin_round(weight < kMaxWeight ? weight : kMaxWeight);
  last_round_us = now;
  round_wait_us = ++rounds_begun <= kFirstRounds ? kFirstWait : round_wait_us + round_wait_us / 4;
  if (round_wait_us > kLastWait)
    round_wait_us = kLastWait;
  next_round_us = now + round_wait_us;
  return kRound;
}

void on_fork() {
  reset_units_in_child();
  reset_windows_in_child();
  round_wait_us = last_round_us = next_round_us = 0;
  rounds_begun = 0;
}

void write_all(ProfileFile &to) {
  write_all_counts(to);
  write_all_windows(to);
}

// Units that are still there are written anew, as they were counted here; of others the records are all there is.
Compacted take(const FileRecord &r, bool is_void, ProfileFile &to) {
  if (r.header.kind == ASSAY_RECORD_FieldSet || r.header.kind == ASSAY_RECORD_FieldSharing ||
      r.header.kind == ASSAY_RECORD_FieldSampling)
    return Compacted::kDone; // all are written anew
  if (r.header.kind != ASSAY_RECORD_FieldCounts)
    return Compacted::kNotMine;
  auto counts = r.as<AssayFieldCounts>();
  return copy_record(r, !is_void && !is_known_unit(ModuleId{counts.module}, counts.site), to);
}

constinit const Compactor compactor = {[] { return true; }, [](const FileRecord &) {}, take,
                                       write_all, [] {}};

} // namespace

extern const Subscriber subscriber;
constinit const Subscriber subscriber = {
    .name = "fields",
    .start = [] { return true; },
    .on_flush = on_flush,
    .on_reset = on_reset,
    .on_poll = on_poll,
    .on_thread_start = on_thread_start,
    .on_module = on_module,
    .on_module_end = end_units,
    .on_unload = remove_units,
    .on_end = on_end,
    .on_fork = on_fork,
    .compactor = &compactor,
};

} // namespace assay::fields
