// The writer of the profile, inside the program: abi/container.h through one buffer.
#pragma once

#include "abi/records.h"
#include "runtime/core/file/file_records.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/message.h"
#include "runtime/core/system/options.h"
#include "runtime/core/system/own_files.h"

namespace assay {

class ProfileFile {
public:
  // Makes the run's folder, DIR/TIME-PROGRAM.PID or DIR/run where that is given, and PROGRAM.PID.assay
  // in it, and writes the file header. False, with a message, when that is impossible; then append
  // does nothing.
  bool open(OptionText dir_pattern, OptionText run, const char *executable);
  // The same in the folder that is open already, for the child of a fork.
  bool open_in_same_run(const char *executable);

  // Adds one record: a struct of abi/records.def and its tail. Thread-safe.
  template <typename Fixed>
  void append(AssayRecordKind kind, const Fixed &fixed, const void *tail = nullptr,
              size_t tail_size = 0) {
    append_record(kind, &fixed, sizeof fixed, tail, tail_size);
  }

  // A record that was read from a file, as it is stored.
  void copy(const FileRecord &record);

  // Everything appended so far is in the file when this returns, or waits for the helper thread.
  void flush();

  // Puts a shorter file in the place of this one: `write(from, size, to)` is given what is in the file
  // so far and appends to `to` what shall be there instead; what was appended meanwhile follows. Returns
  // the bytes that it wrote; 0 when it returned false or anything failed: then all stays as it is. One
  // caller at a time.
  using Rewrite = bool (*)(const uint8_t *from, size_t size, ProfileFile &to);
  uint64_t replace(Rewrite write);

  const char *path() const { return path_.c_str(); }
  const char *live_path() const { return live_path_.c_str(); }
  uint64_t bytes() const { return bytes_; }
  bool is_open() const { return is_open_; }
  // Something could not be written, for good or so far.
  bool has_failed();
  // What cannot be written waits in memory for the next flush, unless there is none.
  void expect_end(bool ends) { ends_ = ends; }
  OwnDescriptor &own_descriptor() { return own_; }
  // For the child of a fork: forgets the parent's file and what was buffered for it.
  void reset_in_child();

private:
  void append_record(uint32_t kind, const void *fixed, size_t fixed_size, const void *tail,
                     size_t tail_size);
  void put_record(uint32_t kind, const void *fixed, size_t fixed_size, const void *tail,
                  size_t tail_size);
  void put(const void *data, size_t size);
  bool is_behind() const { return write_at_ > kBufferBytes; }
  bool lacks_something() const { return failed_ || is_closed_ || is_behind(); }
  bool may_take(size_t size);
  bool put_sparse(uint32_t kind, const void *fixed, size_t fixed_size, const void *tail,
                  size_t tail_size);
  void write_out();
  size_t write_to(long descriptor, size_t size);
  void keep_from(size_t done);
  long descriptor();
  bool adopt(long descriptor);
  // `advice`: what is said where that fails.
  bool create(const char *advice);
  bool start(const char *program, const char *advice);
  bool open_replacement(const ProfileFile &old);
  bool publish_replacement(const char *path);
  bool copy_from(long descriptor, uint64_t begin, uint64_t end);

  SpinLock lock_;
  bool is_open_ = false;
  OwnDescriptor own_;
  FileIdentity identity_ = {}; // of the file in both tables
  uint64_t bytes_ = 0;
  size_t used_ = 0;
  bool failed_ = false, ends_ = false;
  bool is_closed_ = false; // too much waits, so no more is taken
  uint64_t refused_ = 0;   // records since then
  bool named_ = false;     // of a replacement: it is at path_ already
  Text path_, run_folder_, live_path_;
  // What is written at once; and what is kept at most, for the helper or for a disk that is full.
  static constexpr size_t kBufferBytes = 64 << 10, kMaxKept = 16 << 20;
  size_t write_at_ = kBufferBytes; // bytes in the buffer
  char *buffer_ = nullptr;         // kMaxKept
};

} // namespace assay
