// The fields tool in the process: it hears of modules and threads, and writes what was counted. The counting itself is in the
// program's code (compiler/fields_pass.cc).

#include "abi/fields.h"
#include "abi/sites.h"
#include "runtime/core/file/compaction.h"
#include "runtime/core/runtime.h"
#include "runtime/fields/threads.h"
#include "runtime/fields/units.h"

namespace assay::fields {
namespace {

constexpr uint64_t kMaxShare = 50; // one part in so many of the time may go into summing up

constinit uint64_t next_sum_us = 0;

void on_flush(FlushKind kind) {
  uint64_t begin = now_us();
  if (kind == FlushKind::kFlush && begin < next_sum_us)
    return;
  write_counts();
  uint64_t end = now_us();
  next_sum_us = end + (end - begin) * kMaxShare;
}

void on_thread_start() {
  if (first_block())
    take_block();
}

// Threads that still run count where nobody looks any more.
void on_end() {
  write_counts();
}

// Units that are still there are written anew, as they were counted here; of others the records are all there is.
Compacted take(const FileRecord &r, bool is_void, ProfileFile &to) {
  if (r.header.kind != ASSAY_RECORD_FieldCounts)
    return Compacted::kNotMine;
  auto counts = r.as<AssayFieldCounts>();
  return copy_record(r, !is_void && !is_known_unit(counts.module, counts.site), to);
}

constinit const Compactor compactor = {[] { return true; }, [](const FileRecord &) {}, take,
                                       write_all_counts, [] {}};

} // namespace

extern const Subscriber subscriber;
constinit const Subscriber subscriber = {
    .name = "fields",
    .start = [] { return true; },
    .on_flush = on_flush,
    .on_reset = drop_counts,
    .on_thread_start = on_thread_start,
    .on_module = add_units,
    .on_unload = remove_units,
    .on_end = on_end,
    .on_fork = reset_units_in_child,
    .compactor = &compactor,
};

} // namespace assay::fields
