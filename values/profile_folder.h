// The folder of a recording that goes on: a file for each executable, to which what was measured is
// added again and again, and one, system.assay, for what belongs to none.
//
// Bounded: of each file at most kMaxLists hotlists stay, those that came in most samples, and the
// folder holds at most `max_bytes`, beyond which files that got nothing for the longest time are
// removed. What goes is a loss, in the file itself or in system.assay.
#pragma once

#include "base/folder_lock.h"
#include "values/profile_parts.h"

#include <cstdint>
#include <string>

namespace values {

class ProfileFolder {
public:
  static constexpr size_t kMaxLists = 10'000, kMaxInstructions = 100'000;

  // Makes the folder, and keeps others from writing there as long as it lives. Throws Failure.
  ProfileFolder(std::string folder, uint64_t max_bytes);
  ProfileFolder(const ProfileFolder &) = delete;
  ProfileFolder &operator=(const ProfileFolder &) = delete;

  // Adds to the part's file. A reader sees the file as it was or as it is then. A file that is no
  // profile is put aside, under a name that ends in .damaged: returns a sentence about it, or an
  // empty text. Throws Failure; the file is then as it was.
  std::string add(ProfilePart part);
  // Removes files until the folder is as small as it must be: how many. Their values are a loss of
  // the next file of the whole system.
  unsigned remove_oldest();

  const std::string &path() const { return folder_; }

private:
  void hold();
  void remove_parts();
  std::string folder_;
  uint64_t max_bytes_;
  base::FolderLock lock_;
  uint64_t removed_values_ = 0;
};

} // namespace values
