// Profiles from files: one, several added up, or several apart by program.
//
// What a file cannot say of itself is found out here: a process without an end record
// was killed or still runs. It runs if its control page and a process of that id are
// there and the process is that program: a pid may have been given to another one meanwhile.
//
// Programs are told apart by the build ids of their executables, so that a rebuilt program is
// another one and a copy of it is not. A file in which several were merged cannot be taken apart
// again: its contexts do not say which process they are of.
//
// Of several files, one that cannot be read is a loss, and the others are read: a full disk leaves empty ones.

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/stable_sort.h"
#include "profile/kept_files.h"
#include "profile/merge.h"
#include "profile/profile.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unistd.h>

namespace profile {
namespace {

bool still_runs(const Process &process, const std::string &path) {
  constexpr std::string_view kSuffix = ".assay";
  if (!path.ends_with(kSuffix))
    return false;
  std::string page = path.substr(0, path.size() - kSuffix.size()) + ".live";
  auto pid = static_cast<pid_t>(process.pid);
  if (pid <= 0 || access(page.c_str(), F_OK) != 0 || (kill(pid, 0) != 0 && errno != EPERM))
    return false;
  std::error_code unreadable;
  auto executable = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), unreadable);
  return unreadable || executable == process.executable;
}

// What runs has not been killed.
void note_running(Profile &profile, const std::string &path) {
  for (const Process &process : profile.processes) {
    auto killed = profile.losses.find(ASSAY_LOSS_killed);
    if (!process.ends.empty() || killed == profile.losses.end() || !still_runs(process, path))
      continue;
    profile.notes.push_back(fmt::format("process {} is still running; this is what it has written "
                                        "so far, and `assay snapshot -p {}` makes it write more",
                                        process.pid, process.pid));
    profile.notes.running++;
    if (--killed->second == 0)
      profile.losses.erase(killed);
  }
}

Profile read_file(const std::string &path) {
  base::MappedFile file(path);
  Profile one = read_bytes(file.bytes(), path);
  note_running(one, path);
  find_kept_files(one, std::filesystem::path(path).parent_path());
  return one;
}

// The build ids, or paths, of the executables of its processes.
std::set<std::string> programs_of(const Profile &profile) {
  std::set<std::string> programs;
  for (const Process &process : profile.processes) {
    const Module *program = profile.program_of(process);
    if (program && !program->build_id.empty())
      programs.emplace(program->build_id.begin(), program->build_id.end());
    else
      programs.insert(process.executable);
  }
  return programs;
}

// Gives each file that can be read to `take`. Returns what to note of the others; fails if there is
// none that can, or if two do not add up.
template <typename Take> Profile read_each(const std::vector<std::string> &paths, Take take) {
  Profile unread;
  for (const std::string &path : paths) {
    std::optional<Profile> one;
    try {
      one = read_file(path);
    } catch (const base::Failure &failure) {
      unread.losses[ASSAY_LOSS_unreadable_profile]++;
      unread.notes.emplace_back(failure.what());
      continue;
    }
    try { // nothing is wrong with the file: what does not add up is not left out
      take(std::move(*one));
    } catch (const base::Failure &failure) {
      base::fail("{}: {}", path, failure.what());
    }
  }
  if (unread.notes.size() == paths.size() && !paths.empty())
    base::fail("{}", unread.notes.front());
  return unread;
}

} // namespace

Profile read(const std::vector<std::string> &paths) {
  if (paths.size() == 1) // nothing to add up: no second copy
    return read_file(paths.front());
  Assembler all;
  all.add(read_each(paths, [&](Profile &&one) { all.add(std::move(one)); }));
  return all.finish();
}

std::vector<Profile> read_programs(const std::vector<std::string> &paths) {
  std::vector<Profile> profiles;
  if (paths.size() == 1) {
    profiles.push_back(read_file(paths.front()));
    return profiles;
  }
  std::map<std::set<std::string>, Assembler> by_program;
  const Profile unread = read_each(paths, [&](Profile &&one) {
    Assembler &of_program = by_program[programs_of(one)];
    of_program.add(std::move(one));
  });
  for (auto &[programs, assembler] : by_program)
    profiles.push_back(assembler.finish());
  base::stable_sort(profiles, [](const Profile &a, const Profile &b) {
    return !a.processes.empty() && !b.processes.empty() && a.processes[0] < b.processes[0];
  });
  for (auto [kind, count] : unread.losses)
    profiles.front().losses[kind] += count;
  profiles.front().notes.insert(profiles.front().notes.end(), unread.notes.begin(),
                                unread.notes.end());
  return profiles;
}

} // namespace profile
