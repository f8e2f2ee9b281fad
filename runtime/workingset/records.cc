// An item is written when the next one does not continue it.

#include "runtime/workingset/records.h"

namespace assay::workingset {
namespace {

constexpr uint64_t kMostRun = 1 << 18; // lines: readers take no longer runs than ASSAY_MOST_OWNED

} // namespace

void LinesRecord::begin(ProfileFile &file, uint64_t first, uint64_t ticks, uint32_t count) {
  file_ = &file;
  fixed_ = {first, ticks, count};
  waiting_ = false;
  written_to_ = 0;
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
  if (!tail_.has_room())
    write_record();
  tail_.number(group_ - written_to_);
  tail_.number(repeats_);
  uint8_t changed = 0;
  for (uint64_t i = 0; i < fixed_.count; i++)
    changed |= (uint8_t)((planes_[i] != (i ? planes_[i - 1] : 0)) << i);
  tail_.byte(changed);
  for (uint64_t i = 0; i < fixed_.count; i++)
    if (changed >> i & 1)
      tail_.word(planes_[i]);
  written_to_ = group_ + repeats_;
  waiting_ = false;
}

void LinesRecord::write_record() {
  if (!tail_.empty())
    file_->append(ASSAY_RECORD_WorkingSetLines, fixed_, tail_.bytes(), tail_.size());
  tail_.clear();
  written_to_ = 0;
}

void LinesRecord::end() {
  write_group();
  write_record();
}

void OwnersRecord::begin(ProfileFile &file, uint64_t tick) {
  file_ = &file;
  fixed_ = {tick};
  lines_ = written_to_ = 0;
}

void OwnersRecord::add(uint64_t first_line, uint64_t lines, uint32_t context) {
  if (lines_ && context == context_ && first_line == first_ + lines_ && lines_ < kMostRun) {
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
  if (!tail_.has_room())
    write_record();
  tail_.number(first_ - written_to_);
  tail_.number(lines_);
  tail_.number(context_);
  written_to_ = first_;
  lines_ = 0;
}

void OwnersRecord::write_record() {
  if (!tail_.empty())
    file_->append(ASSAY_RECORD_WorkingSetOwners, fixed_, tail_.bytes(), tail_.size());
  tail_.clear();
  written_to_ = 0;
}

void OwnersRecord::end() {
  write_run();
  write_record();
}

} // namespace assay::workingset
