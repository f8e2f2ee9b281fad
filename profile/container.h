// The framing of a profile (abi/container.h): the only code on the tool side that reads or writes
// it.
//
// Reading trusts nothing: whatever the bytes are, reading ends, allocates nothing, and either
// throws one Failure (this is not a profile that can be read) or yields the records up to the first
// damage.
#pragma once

#include "abi/records.h"
#include "base/byte_reader.h"
#include "base/output_file.h"
#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace profile {

// One record in place. What was stored sparsely is whole here.
struct RecordView {
  uint32_t kind = 0;                // ASSAY_RECORD_*, or one that this version does not know
  uint64_t offset = 0;              // of the record header in the file
  std::span<const std::byte> fixed; // until the reader reads the next record
  std::span<const std::byte> tail;  // in the bytes that the reader was made from

  uint64_t size() const { return fixed.size() + tail.size(); }
};

// The fixed part of a record as its struct. A longer one is of a newer minor version and is cut; a shorter one throws
// Failure.
template <class Record> Record fixed_part(const RecordView &view) {
  if (view.fixed.size() < sizeof(Record))
    base::fail("the record at offset {} has a fixed part of {}, {} are needed", view.offset,
               base::with_noun(view.fixed.size(), "byte"), sizeof(Record));
  return base::ByteReader(view.fixed).read<Record>();
}

// A tail of elements of one type; `what` names it in the Failure that is thrown if its size is no multiple of theirs.
template <class T> std::vector<T> items_of(std::span<const std::byte> tail, const char *what) {
  if (tail.size() % sizeof(T) != 0)
    base::fail("{}", what);
  std::vector<T> items(tail.size() / sizeof(T));
  if (!items.empty())
    std::memcpy(items.data(), tail.data(), tail.size());
  return items;
}

class ContainerReader {
public:
  // Checks the file header; throws Failure when this is no file of that kind (ASSAY_FILE_*), one of another version, or
  // damaged. `bytes` must outlive the reader, `path` names the file in messages.
  ContainerReader(std::span<const std::byte> bytes, std::string path,
                  uint32_t kind = ASSAY_FILE_PROFILE);

  const AssayFileHeader &header() const { return header_; }

  // The next record, or false at the end of what can be read.
  bool next(RecordView &record);

  // After next() returned false: the bytes that were left out because the tail is missing or
  // damaged (0 if all was read), and one sentence that says so.
  uint64_t lost_bytes() const { return lost_bytes_; }
  const std::string &damage() const { return damage_; }
  // They are there, but wrong: what they said is not known, nor how the run ended.
  bool is_damaged() const { return is_damaged_; }

private:
  // No more records; false.
  bool stop(uint64_t lost, std::string reason);
  bool cut_off(uint64_t lost);
  bool damaged(uint64_t lost, const char *how);

  std::span<const std::byte> bytes_;
  std::string path_;
  AssayFileHeader header_;
  uint64_t position_ = 0;
  uint64_t lost_bytes_ = 0;
  std::string damage_;
  bool is_damaged_ = false;
  std::array<std::byte, ASSAY_SPARSE_MAX> whole_; // the fixed part of a sparse record
};

// Writes a profile or a trace: into memory, or piece by piece into a file, of which memory holds a megabyte.
class ContainerWriter {
public:
  ContainerWriter(uint32_t pid, uint64_t start_unix_ns, uint32_t kind = ASSAY_FILE_PROFILE);
  // Throws Failure if the file cannot be written; so do the functions that write into it.
  ContainerWriter(const std::string &path, uint32_t pid, uint64_t start_unix_ns,
                  uint32_t kind = ASSAY_FILE_PROFILE, base::Written written = base::Written::whole);

  template <class Record>
  void record(uint32_t kind, const Record &fixed, std::span<const std::byte> tail = {}) {
    static_assert(sizeof(Record) % 8 == 0);
    raw_record(kind, std::as_bytes(std::span(&fixed, 1)), tail);
  }
  void raw_record(uint32_t kind, std::span<const std::byte> fixed, std::span<const std::byte> tail);

  // What was written into memory.
  const std::vector<std::byte> &bytes() const { return bytes_; }

  // What was written so far is in the file, if it is one that grows.
  void flush();
  // The file is whole, and takes its place. Without, it is not there, unless it is one that grows.
  void commit();

private:
  std::unique_ptr<base::OutputFile> file_; // none: into memory
  std::vector<std::byte> bytes_;           // that are not in the file yet
};

// A tail of strings: each with its zero byte. Embedded zero bytes would end a string early, so a
// string ends at its first.
std::vector<std::byte> string_tail(std::span<const std::string> strings);

} // namespace profile
