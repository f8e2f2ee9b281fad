// Finding profiles by convention, as perf does with perf.data.
//
// A run writes DIR/YYYYMMDD-HHMMSS-PROGRAM.PID/PROGRAM.PID.assay and its children write beside it.
// The latest run is the one whose name has the latest time, and of several in one second the one
// whose profile says that it started last; so it is of folders that have another name (option
// `run=`). Runs that left no profile (still starting, or failed) are passed over. Modification
// times were refused: a copy or an unpacked archive changes them.

#include "profile/find_profiles.h"

#include "abi/container.h"
#include "base/fail.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace profile {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSuffix = ".assay";
constexpr int kDeepest = 8; // folders of children within folders of children

AssayFileHeader header_of(const fs::directory_entry &entry) {
  AssayFileHeader header = {};
  std::ifstream(entry.path()).read(reinterpret_cast<char *>(&header), sizeof header);
  return header;
}

// A trace lies beside profiles, and is none.
bool is_profile(const fs::directory_entry &entry) {
  std::error_code ignored;
  return entry.path().extension() == kSuffix && entry.is_regular_file(ignored) &&
         header_of(entry).kind != ASSAY_FILE_TRACE;
}

std::vector<fs::directory_entry> entries_of(const std::string &folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error))
    entries.push_back(*each);
  if (error)
    base::fail("{}: this folder cannot be read: {}", folder, error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

void collect(const std::string &folder, int depth, std::vector<std::string> &found) {
  for (const fs::directory_entry &entry : entries_of(folder)) {
    std::error_code ignored;
    if (is_profile(entry))
      found.push_back(entry.path().string());
    else if (depth < kDeepest && entry.is_directory(ignored) && !entry.is_symlink(ignored))
      collect(entry.path().string(), depth + 1, found);
  }
}

// When the first profile in the folder says that its run began; 0 if there is none.
uint64_t start_of(const fs::directory_entry &folder) {
  std::error_code error;
  for (fs::directory_iterator each(folder.path(), error), end; !error && each != end;
       each.increment(error))
    if (is_profile(*each))
      return header_of(*each).start_unix_ns;
  return 0;
}

// That of its name, else that of its start.
std::string time_of(const fs::directory_entry &folder) {
  const std::string name = folder.path().filename().string();
  const std::string form = "dddddddd-dddddd";
  if (name.size() >= form.size() &&
      std::equal(form.begin(), form.end(), name.begin(), [](char wanted, char c) {
        return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted;
      }))
    return name.substr(0, form.size());
  return run_time_text(static_cast<std::time_t>(start_of(folder) / 1'000'000'000));
}

void sort_latest_first(std::vector<fs::directory_entry> &folders) {
  std::map<fs::path, std::string> times;
  for (const fs::directory_entry &each : folders)
    times[each.path()] = time_of(each);
  std::sort(folders.begin(), folders.end(), [&](const auto &a, const auto &b) {
    const std::string &time_a = times[a.path()], &time_b = times[b.path()];
    return time_a != time_b ? time_a > time_b : start_of(a) > start_of(b);
  });
}

// The profiles of the folder itself if it is a run, else of the latest run in it.
std::vector<std::string> latest_in(const std::string &folder) {
  auto entries = entries_of(folder);
  if (std::any_of(entries.begin(), entries.end(), is_profile))
    return profiles_in_run(folder);
  std::erase_if(entries, [](const auto &entry) {
    std::error_code ignored;
    return !entry.is_directory(ignored);
  });
  sort_latest_first(entries);
  for (const fs::directory_entry &entry : entries) {
    auto found = profiles_in_run(entry.path().string());
    if (!found.empty())
      return found;
  }
  return {};
}

[[noreturn]] void fail_without_profile(const std::string &folder) {
  base::fail("no profile found in {}; make one with `assay run -- ./app` (built with assay-cc) or "
             "`assay values record -- ./app`, or name one",
             folder);
}

} // namespace

const char *const kDefaultFolder = "assay.out";

std::string run_time_text(std::time_t time) {
  std::tm utc = {};
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", gmtime_r(&time, &utc));
  return text;
}

std::vector<std::string> profiles_in_run(const std::string &folder) {
  std::vector<std::string> found;
  collect(folder, 0, found);
  return found;
}

std::vector<std::string> find_profiles(const std::vector<std::string> &arguments) {
  std::vector<std::string> found;
  for (const std::string &argument : arguments) {
    std::error_code ignored;
    if (!fs::is_directory(argument, ignored)) {
      if (!fs::exists(argument, ignored))
        base::fail("{}: there is no such file or folder", argument);
      found.push_back(argument); // reading it says what is wrong, if anything is
      continue;
    }
    auto here = latest_in(argument);
    if (here.empty())
      fail_without_profile(argument);
    found.insert(found.end(), here.begin(), here.end());
  }
  if (arguments.empty()) {
    std::error_code ignored;
    if (fs::is_directory(kDefaultFolder, ignored))
      found = latest_in(kDefaultFolder);
    if (found.empty())
      fail_without_profile(kDefaultFolder);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

} // namespace profile
