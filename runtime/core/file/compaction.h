// Keeps the profile of a long run short.
#pragma once

#include "runtime/core/file/file_records.h"
#include "runtime/core/file/profile_file.h"

namespace assay {

// What compaction did with a record.
enum class Compacted {
  kNotMine, // it is another's
  kDone,    // it was copied, added to a sum or left out
  kFailed,  // it cannot be added up: the file is to stay as it is
};

// A tool's part in it, for the tool's own records. Under the lock of flush().
struct Compactor {
  bool (*begin)();                   // false: there is no memory
  void (*look)(const FileRecord &r); // first, at each record of the file
  // Then at each record again. `is_void`: a reset came after it.
  Compacted (*take)(const FileRecord &r, bool is_void, ProfileFile &to);
  void (*write_sums)(ProfileFile &to);
  void (*end)(); // gives back the memory, also if begin() failed
};

// Copies the record if it is wanted.
Compacted copy_record(const FileRecord &r, bool wanted, ProfileFile &to);

// Compacts the file if it has grown beyond the option compact_bytes, and to twice what the last
// compaction left. Under the lock of flush().
void compact_if_large();

} // namespace assay
