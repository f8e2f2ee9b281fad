// The records of the working set, written as they are made: abi/lines.h is the format.
#pragma once

#include <stdint.h>

#include "abi/lines.h"
#include "abi/records.h"
#include "runtime/core/profile_file.h"
#include "runtime/workingset/lines.h"

namespace assay::workingset {

// Bytes that become the tail of records, one record for each piece that is full. One at a time: the
// buffer is shared.
class Tail {
public:
  static constexpr uint32_t kBytes = 64 << 10, kMostItem = 96;
  void number(uint64_t n) {
    for (; n >= 128; n >>= 7)
      bytes_[used_++] = (uint8_t)(n | 128);
    bytes_[used_++] = (uint8_t)n;
  }
  void byte(uint8_t b) { bytes_[used_++] = b; }
  void word(uint64_t w) {
    __builtin_memcpy(bytes_ + used_, &w, sizeof w);
    used_ += sizeof w;
  }
  bool has_room() const { return used_ + kMostItem <= kBytes; }
  bool empty() const { return used_ == 0; }
  const uint8_t *bytes() const { return bytes_; }
  uint32_t size() const { return used_; }
  void clear() { used_ = 0; }

private:
  uint32_t used_ = 0;
  uint8_t bytes_[kBytes];
};

// The lines of `count` snapshots, each of so many ticks, from tick `first` on. Groups come in ascending
// order; plane 0 is the oldest snapshot.
class LinesRecord {
public:
  void begin(ProfileFile &file, uint64_t first, uint64_t ticks, uint32_t count);
  void add(uint64_t group, const uint64_t *planes);
  void end();

private:
  void write_group();
  void write_record();
  ProfileFile *file_;
  Tail tail_;
  AssayWorkingSetLines fixed_;
  uint64_t planes_[kMostPlanes]; // of the group that waits for its repeats
  uint64_t group_, repeats_, written_to_;
  bool waiting_;
};

// New owners of lines in one snapshot, by first line.
class OwnersRecord {
public:
  void begin(ProfileFile &file, uint64_t tick);
  void add(uint64_t first_line, uint64_t lines, uint32_t context);
  void end();

private:
  void write_run();
  void write_record();
  ProfileFile *file_;
  Tail tail_;
  AssayWorkingSetOwners fixed_;
  uint64_t first_, lines_, written_to_; // the run that may go on
  uint32_t context_;
};

} // namespace assay::workingset
