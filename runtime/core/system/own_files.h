// Files of the runtime's own inside the program's process. Two rules keep them out of the program's sight:
//
//   1. A descriptor of ours lies near the limit of descriptor numbers, or near 1,024 if that is lower, because POSIX
//      gives a program the lowest free number, and programs rely on that.
//   2. A number may mean another file by now: programs close and dup2 onto descriptors that they did not open.
//      So each use asks the kernel first (fstat) whether the number still means the file that we opened.
//
// The helper thread has a descriptor table of its own (core/system/helper_thread.cc): what it opens
// is not visible to the program at all. So a file has one number for each of the two tables.
#pragma once

#include "runtime/core/system/file_identity.h"
#include "runtime/core/system/lock.h"

namespace assay {

// Moves a descriptor, just opened, to a high number, and closes the low one. Returns the number that it has
// now, which is the same one where the limit leaves no room.
long move_high(long descriptor);

// The number of an open file of ours, in each of the two tables.
class OwnDescriptor {
public:
  // Takes a descriptor that was just opened in the calling thread's table.
  void adopt(long descriptor);
  // The number in the calling thread's table; negative where it does not mean the file any more.
  long number() const;
  bool is_open() const { return numbers_[0] >= 0 || numbers_[1] >= 0; }
  // For the program's threads: the helper has it open.
  bool is_open_for_helper_alone() const { return current_table() == 0 && numbers_[1] >= 0; }
  FileIdentity identity() const { return identities_[current_table()]; }
  // Closes it in the calling thread's table.
  void close();
  // Forgets it without closing: another one has adopted it.
  void reset() { numbers_[0] = numbers_[1] = -1; }
  // In the child of a fork, which has no helper yet.
  void reset_in_child();
  // The helper's table begins as a copy of the program's.
  void copy_to_helper();

private:
  static int current_table();
  long numbers_[2] = {-1, -1}; // in the program's table, in the helper's
  FileIdentity identities_[2] = {};
};

// A file of /proc that is opened once and read many times at given offsets. It goes on meaning this process
// after setuid, chroot, PR_SET_DUMPABLE and the end of the first thread, where a new open would fail.
class ProcFile {
public:
  explicit constexpr ProcFile(const char *path) : path_(path) {}
  // The descriptor in the calling thread's table, opened again where the program has closed it; negative where
  // that is impossible. Any thread, inside a ReentrancyGuard section; no lock.
  long descriptor();
  // In the child of a fork: the parent's descriptors show the parent.
  void reset_in_child();
  OwnDescriptor &own_descriptor() { return own_; }

private:
  const char *path_;
  OwnDescriptor own_;
};

// In the order of their use: where pages of a shadow were touched; what is mapped where; is the first thread
// alive?
extern ProcFile pagemap_file, maps_file, stat_file;

// Opens all of them, before the program can take the right to do so from itself. In the child of a
// fork, which seldom lives long enough to need them, on the helper thread: that keeps the rights of
// the time when it was made.
void open_proc_files();
void reset_proc_files_in_child();
// Since then the calling thread has changed its user, its root or whether it may be looked at.
bool has_lost_rights_since_fork();

// On the helper thread, at its start: leaves the program's descriptor table for one that holds only our files,
// with the numbers that they have. Where the kernel cannot (before Linux 5.9) the table stays the program's.
void leave_descriptor_table();

// On the helper thread: a copy of the program's descriptor, to be closed after use; negative if it has none.
long borrow_from_program(long descriptor);

} // namespace assay
