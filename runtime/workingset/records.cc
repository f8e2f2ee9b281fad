// An item is written when the next one does not continue it.
//
// Neighbours are often alike. A group of lines that is as the one before it only counts as a
// repetition; of a group's planes, those are written that differ from the plane before. Lines in
// sequence with one owner are one run, of 2^18 at most, because readers take no longer ones.
// Numbers are differences to the last item, and cannot be negative: a run that begins before the
// last one begins a new record.

#include "runtime/workingset/records.h"

namespace assay::workingset {
namespace {

constexpr uint64_t kMaxRun = 1 << 18; // lines: readers take no longer runs than ASSAY_MOST_OWNED

} // namespace

void LinesRecord::begin(ProfileFile &file, uint64_t first, uint64_t ticks, uint32_t count) {
  ListRecord::begin(file, {first, ticks, count});
  waiting_ = false;
}

void LinesRecord::add(uint64_t group, const uint64_t *planes) {
  uint64_t any = 0, differ = 0;
  for (uint64_t i = 0; i < fixed_.count; i++) {
    any |= planes[i];
    differ |= planes[i] ^ planes_[i];
  }
  if (waiting_ && group == group_ + repeats_ + 1 && !differ) {
    repeats_++;
    return;
  }
  write_group();
  for (uint64_t i = 0; i < fixed_.count; i++)
    planes_[i] = planes[i];
  waiting_ = any != 0;
  group_ = group;
  repeats_ = 0;
}

void LinesRecord::write_group() {
  if (!waiting_)
    return;
  begin_item(group_);
  put_number(repeats_);
  uint8_t changed = 0;
  for (uint64_t i = 0; i < fixed_.count; i++)
    changed |= (uint8_t)((planes_[i] != (i ? planes_[i - 1] : 0)) << i);
  put_byte(changed);
  for (uint64_t i = 0; i < fixed_.count; i++)
    if (changed >> i & 1)
      put_word(planes_[i]);
  last_ = group_ + repeats_;
  waiting_ = false;
}

void LinesRecord::end() {
  write_group();
  write();
}

void OwnersRecord::begin(ProfileFile &file, uint64_t tick) {
  ListRecord::begin(file, {tick});
  lines_ = 0;
}

void OwnersRecord::add(uint64_t first_line, uint64_t lines, ContextId context) {
  if (lines_ && context == context_ && first_line == first_ + lines_ && lines_ < kMaxRun) {
    lines_ += lines;
    return;
  }
  write_run();
  first_ = first_line;
  lines_ = lines;
  context_ = context;
}

void OwnersRecord::write_run() {
  if (!lines_)
    return;
  // While a page is asked, line by line, another thread may own all of it anew: that run begins before the last one.
  if (first_ < last_)
    write();
  begin_item(first_);
  put_number(lines_);
  put_number((uint32_t)context_);
  lines_ = 0;
}

void OwnersRecord::end() {
  write_run();
  write();
}

} // namespace assay::workingset
