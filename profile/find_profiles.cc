// Finding profiles by convention, as perf does with perf.data.
//
// A run writes DIR/YYYYMMDD-HHMMSS-PROGRAM.PID/PROGRAM.PID.assay and its children write beside it.
// A folder is a run if profiles lie directly in it, and a folder of runs if they lie one level below. Those further
// below are not searched: they would be of unrelated runs, which do not add up, and a search below / takes its time.
// In a folder that is named as runs are, the runs that are named so belong to it.
//
// The latest run is the one whose name has the latest time, and of several in one second the one
// whose profile says that it started last; so it is of folders that have another name (option
// `run=`). Runs that left no profile (still starting, or failed) are passed over. Modification
// times were refused: a copy or an unpacked archive changes them.

#include "profile/find_profiles.h"

#include "abi/container.h"
#include "base/fail.h"
#include "base/shell_words.h"

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

bool is_ours(const fs::directory_entry &entry) {
  std::error_code ignored;
  return entry.path().extension() == kSuffix && entry.is_regular_file(ignored);
}

bool is_trace(const fs::directory_entry &entry) {
  return is_ours(entry) && header_of(entry).kind == ASSAY_FILE_TRACE;
}

// A trace lies beside profiles, and is none.
bool is_profile(const fs::directory_entry &entry) {
  return is_ours(entry) && header_of(entry).kind != ASSAY_FILE_TRACE;
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

// The time with which the name of a run's folder begins; empty if it begins with none.
std::string time_in(const std::string &name) {
  const std::string form = "dddddddd-dddddd";
  if (name.size() >= form.size() &&
      std::equal(form.begin(), form.end(), name.begin(), [](char wanted, char c) {
        return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted;
      }))
    return name.substr(0, form.size());
  return "";
}

// That of its name, else that of its start.
std::string time_of(const fs::directory_entry &folder) {
  if (std::string time = time_in(folder.path().filename().string()); !time.empty())
    return time;
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

bool is_folder(const fs::directory_entry &entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

bool is_named_as_run(const fs::path &folder) {
  std::error_code ignored;
  return !time_in(fs::canonical(folder, ignored).filename().string()).empty();
}

// The profiles that lie directly in the folder, and those of the runs in it if it is a run itself; none: it is no run.
std::vector<std::string> profiles_of_run(const std::string &folder) {
  const auto entries = entries_of(folder);
  std::vector<std::string> found;
  for (const fs::directory_entry &entry : entries)
    if (is_profile(entry))
      found.push_back(entry.path().string());
  if (found.empty() || !is_named_as_run(folder))
    return found;
  for (const fs::directory_entry &entry : entries)
    if (is_folder(entry) && is_named_as_run(entry.path())) {
      const auto within = profiles_of_run(entry.path().string());
      found.insert(found.end(), within.begin(), within.end());
    }
  return found;
}

// The profiles of the folder itself if it is a run, else of the latest run in it.
std::vector<std::string> latest_in(const std::string &folder) {
  if (auto found = profiles_of_run(folder); !found.empty())
    return found;
  auto entries = entries_of(folder);
  std::erase_if(entries, [](const auto &entry) { return !is_folder(entry); });
  sort_latest_first(entries);
  for (const fs::directory_entry &entry : entries) {
    std::error_code error;
    if (fs::directory_iterator(entry.path(), error); error && !is_named_as_run(entry.path()))
      continue; // somebody else's, of which nobody asked
    auto found = profiles_of_run(entry.path().string());
    if (!found.empty())
      return found;
  }
  return {};
}

// Whether one of the files directly in the folder, or in a folder in it, is wanted; of folders that cannot be read,
// none is.
template <class Wanted> bool has_entry(const fs::path &folder, int depth, const Wanted &wanted) {
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error))
    if (wanted(*each, depth) ||
        (depth == 0 && is_folder(*each) && has_entry(each->path(), 1, wanted)))
      return true;
  return false;
}

[[noreturn]] void fail_without_profile(const std::string &folder) {
  if (has_entry(folder, 0, [](const fs::directory_entry &entry, int) { return is_trace(entry); }))
    base::fail(
        "no profile found in {0}, which holds a trace: `assay trace info {1}` reads it; make a "
        "profile with `assay run -- ./app` (built with assay-cc) or `assay values record -- "
        "./app`, or name one",
        folder, base::shell_word(folder));
  if (has_entry(folder, 0, [](const fs::directory_entry &entry, int depth) {
        return depth == 1 && is_folder(entry);
      }))
    base::fail("no profile found in {}, nor in the folders in it; folders further below are not "
               "searched: name the one of the run, or make a profile with `assay run -- ./app` "
               "(built with assay-cc) or `assay values record -- ./app`",
               folder);
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

bool has_profile(const std::string &folder) {
  return has_entry(folder, 0,
                   [](const fs::directory_entry &entry, int) { return is_profile(entry); });
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
