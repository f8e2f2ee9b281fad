// The problem: a recording that never ends must not grow, and what it has found must be there
// however it ends. So sums are taken away from the recording every minute, split by executable, and
// added to files. Adding needs one file in memory at a time. One file for everything was refused:
// each round would read and write all of it, and what no longer runs could not be forgotten. Files
// are not forced to the disk (fsync): samples would be lost meanwhile; if the machine stops, the
// last minute may be.
//
// A lock on the folder itself keeps a second recording out; the kernel takes it back when this
// process ends, however it ends.

#include "values/profile_folder.h"

#include "abi/records.h"
#include "base/fail.h"
#include "base/stable_sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace values {
namespace {

namespace fs = std::filesystem;

constexpr const char *kDamagedExtension = ".damaged"; // of files that could not be read

uint64_t values_in(const fs::path &file) {
  uint64_t values = 0;
  try {
    for (const profile::SampledValues &each : profile::read({file.string()}).values.values)
      values += each.hotlist.values();
  } catch (const base::Failure &) { // a damaged file has none that could be lost
    return 0;
  }
  return values;
}

} // namespace

ProfileFolder::ProfileFolder(std::string folder, uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  hold();
}

// Makes it, if it is not there, and locks it.
void ProfileFolder::hold() {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    base::fail("{}: the folder for profiles cannot be made: {}; choose another one with -o",
               folder_, error.message());
  lock_ = base::FolderLock(folder_);
  remove_parts();
}

// What a recording that was killed had not written whole. Nobody writes here now but us.
void ProfileFolder::remove_parts() {
  std::vector<fs::path> parts;
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end;
       each.increment(error))
    if (each->path().extension() == ".part" &&
        each->path().filename().string().find(".assay.") != std::string::npos)
      parts.push_back(each->path());
  for (const fs::path &part : parts)
    fs::remove(part, error);
}

std::string ProfileFolder::add(ProfilePart part) {
  const fs::path file = fs::path(folder_) / part.file, aside = file.string() + kDamagedExtension;
  if (!lock_.is_of(folder_)) // somebody may have removed it, or put another one in its place
    hold();
  profile::Profile sum;
  std::string said;
  std::error_code error;
  if (fs::exists(file, error)) {
    try {
      sum = profile::read({file.string()});
    } catch (const base::Failure &failure) {
      fs::rename(file, aside, error);
      if (error)
        base::fail("{}: cannot be renamed: {}", file.string(), error.message());
      said =
          fmt::format("{}; it is {} now, and a new one is begun", failure.what(), aside.string());
    }
  }
  add_up(sum, std::move(part.profile), kMaxLists, kMaxInstructions);
  if (part.file == kSystemFile && removed_values_)
    sum.losses[ASSAY_LOSS_many_places] += removed_values_;
  profile::write(sum, file.string());
  if (part.file == kSystemFile)
    removed_values_ = 0;
  return said;
}

unsigned ProfileFolder::remove_oldest() {
  struct File {
    fs::path path;
    fs::file_time_type time;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code gone;
    const uint64_t size = each->file_size(gone);
    if (gone ||
        (each->path().extension() != ".assay" && each->path().extension() != kDamagedExtension))
      continue;
    const uint64_t on_disk = (size + 4095) / 4096 * 4096;
    bytes += on_disk;
    if (each->path().filename() != kSystemFile)
      files.push_back({each->path(), each->last_write_time(gone), on_disk});
  }
  base::stable_sort(files, [](const File &a, const File &b) { return a.time < b.time; });
  unsigned removed = 0;
  for (const File &file : files) {
    if (bytes <= max_bytes_)
      break;
    removed_values_ += values_in(file.path);
    if (fs::remove(file.path, error)) {
      bytes -= file.bytes;
      removed++;
    }
  }
  return removed;
}

} // namespace values
