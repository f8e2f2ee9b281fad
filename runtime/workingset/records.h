// The records of the working set, written as they are made: abi/lines.h is the format.
#pragma once

#include <stdint.h>

#include "abi/lines.h"
#include "abi/records.h"
#include "runtime/core/file/profile_file.h"
#include "runtime/workingset/lines.h"

namespace assay::workingset {

// Records of one kind whose tail is a list: when it is full, it goes on in another record with the same
// fixed part, and numbers begin anew.
template <typename Fixed, AssayRecordKind kKind> class ListRecord {
protected:
  void begin(ProfileFile &file, const Fixed &fixed) {
    file_ = &file;
    fixed_ = fixed;
    last_ = 0;
    // In the child of a fork, bytes_ holds what another thread of the parent was about to write.
    used_ = 0;
  }
  // Before each item: how far its number is beyond the last one's.
  void begin_item(uint64_t number) {
    if (used_ + kMaxItem > kBytes)
      write();
    put_number(number - last_);
    last_ = number;
  }
  void put_number(uint64_t n) { used_ = (uint32_t)(assay_put_number(bytes_ + used_, n) - bytes_); }
  void put_byte(uint8_t b) { bytes_[used_++] = b; }
  void put_word(uint64_t w) {
    __builtin_memcpy(bytes_ + used_, &w, sizeof w);
    used_ += sizeof w;
  }
  void write() {
    if (used_)
      file_->append(kKind, fixed_, bytes_, used_);
    used_ = 0;
    last_ = 0;
  }

  Fixed fixed_;
  uint64_t last_; // number that the next item's is counted from

private:
  static constexpr uint32_t kBytes = 64 << 10, kMaxItem = 96;
  ProfileFile *file_;
  uint32_t used_ = 0;
  uint8_t bytes_[kBytes];
};

// The lines of `count` snapshots, each of so many ticks, from tick `first` on. Groups come in ascending
// order; plane 0 is the oldest snapshot.
class LinesRecord : ListRecord<AssayWorkingSetLines, ASSAY_RECORD_WorkingSetLines> {
public:
  void begin(ProfileFile &file, uint64_t first, uint64_t ticks, uint32_t count);
  void add(uint64_t group, const uint64_t *planes);
  void end();

private:
  void write_group();
  uint64_t planes_[kMaxPlanes]; // of the group that waits for its repeats
  uint64_t group_, repeats_;
  bool waiting_;
};

// New owners of lines in one snapshot, by first line.
class OwnersRecord : ListRecord<AssayWorkingSetOwners, ASSAY_RECORD_WorkingSetOwners> {
public:
  void begin(ProfileFile &file, uint64_t tick);
  void add(uint64_t first_line, uint64_t lines, ContextId context);
  void end();

private:
  void write_run();
  uint64_t first_, lines_; // the run that may go on
  ContextId context_;
};

} // namespace assay::workingset
