#include "trace/moved_files.h"

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "binary/program.h"
#include "image/elf.h"
#include "trace/processes.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <span>
#include <sys/stat.h>

namespace trace {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> without(std::vector<std::string> names,
                                 const std::set<std::string> &found) {
  std::erase_if(names, [&](const std::string &name) { return found.contains(name); });
  return names;
}

MoveSettings move_settings_of(const RecordingSettings &settings) {
  return {settings.log, settings.plans, bool(settings.gate), {}, {}};
}

// What the kernel calls a process.
std::string name_of(uint32_t process) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), name);
  return name;
}

// Of a file that a process has loaded by a name which begins in its folder: dlopen("./plugin.so").
std::string whole_path(const std::string &path, uint32_t process) {
  if (path.find('/') == std::string::npos || path.starts_with('/'))
    return path;
  std::error_code error;
  const fs::path folder = fs::read_symlink(fmt::format("/proc/{}/cwd", process), error);
  return error ? path : (folder / path).lexically_normal().string();
}

} // namespace

MovedFiles::MovedFiles(const RecordingSettings &settings, TraceSink &sink)
    : settings_(settings), sink_(sink),
      cache_(settings.only.empty() ? settings.cache : fs::path(), move_settings_of(settings)) {}

MovedFiles::~MovedFiles() {
  remove();
}

void MovedFiles::remove() {
  std::error_code ignored;
  for (const auto &[key, known] : files_)
    if (!known.code.empty())
      fs::remove(known.code, ignored);
}

void MovedFiles::forget_given_up() {
  std::erase_if(files_, [](const auto &each) { return each.second.is_given_up; });
}

std::vector<std::string> MovedFiles::missing_functions() const {
  return without(settings_.only, found_functions_);
}

std::vector<std::string> MovedFiles::missing_modules() const {
  return without(settings_.modules, found_modules_);
}

bool MovedFiles::was_asked_for(const std::string &path) {
  bool is_wanted = settings_.modules.empty();
  std::error_code ignored;
  for (const std::string &wanted : settings_.modules)
    if (wanted == fs::path(path).filename() ||
        (wanted.find('/') != std::string::npos && fs::equivalent(wanted, path, ignored))) {
      found_modules_.insert(wanted);
      is_wanted = true;
    }
  return is_wanted;
}

const MovedFiles::File &MovedFiles::find(const std::string &loaded_as, uint32_t process) {
  const bool is_main = loaded_as.empty();
  const std::string path = whole_path(loaded_as, process);
  const std::string open_as = is_main ? fmt::format("/proc/{}/exe", process) : path;
  struct stat about = {};
  const bool is_seen = stat(open_as.c_str(), &about) == 0;
  // An executable that this user may run and not read: the kernel does not even say which it is.
  const bool is_unreadable = !is_seen && is_main && errno == EACCES;
  std::string key = is_unreadable ? name_of(process) : path;
  if (is_seen)
    key = fmt::format("{}:{}:{}:{}.{}", about.st_dev, about.st_ino, about.st_size,
                      about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  auto [found, is_new] = files_.try_emplace(key);
  File &known = found->second;
  if (!is_new || (!S_ISREG(about.st_mode) && !is_unreadable)) // the kernel's page is no file
    return known;
  std::error_code ignored;
  known.file.path = is_unreadable ? key
                    : is_main     ? fs::read_symlink(open_as, ignored).string()
                                  : path;
  if (is_main)
    programs_.insert(fs::path(known.file.path).filename());
  known.file.number = next_file_++;
  known.file.first_group = next_group_;
  if (auto id = image::read_build_id(open_as))
    known.file.build_id = *id;
  const std::string name = fs::path(known.file.path).filename();
  const bool is_wanted = was_asked_for(known.file.path);
  if (is_unreadable) {
    known.file.why_not = "its file may not be read; allow that, or trace it as another user";
    untraced_.push_back({name, known.file.why_not});
  } else if (name.starts_with("ld-linux")) {
    known.file.why_not = "the loader runs before anything can be traced";
  } else if (!is_wanted) {
    known.file.why_not = "it was not asked for (--module)";
  } else {
    move(known, open_as, process);
    return known;
  }
  sink_.file(known.file, {});
  return known;
}

// `path` is what the file is called for the user, and `open_as` where it can be read.
MovedModule MovedFiles::moved_code_of(const std::string &open_as, const std::string &path,
                                      uint32_t process) {
  const base::MappedFile file(open_as);
  if (auto kept = cache_.find(file.bytes()))
    return std::move(*kept);
  image::Executable executable(open_as);
  if (executable.patches_code())
    base::fail("its functions are changed as it runs (XRay), and moved ones would not be; build it "
               "without -fxray-instrument");
  uint64_t code = 0;
  for (const auto &[begin, end] : executable.code_regions())
    code += end - begin;
  if (settings_.moves)
    settings_.moves(path, code);
  const binary::Program program{std::move(executable)};
  MoveSettings settings = move_settings_of(settings_);
  settings.is_wanted = [process] { return !has_ended(process); };
  std::set<const binary::Routine *> chosen;
  for (const std::string &each : settings_.only)
    if (const binary::Routine *found = program.find(each)) {
      chosen.insert(found);
      found_functions_.insert(each);
    }
  if (!settings_.only.empty())
    settings.chosen = [&](const binary::Routine &routine) { return chosen.contains(&routine); };
  MovedModule moved = move_code(program, settings);
  cache_.keep(file.bytes(), moved);
  return moved;
}

void MovedFiles::move(File &known, const std::string &open_as, uint32_t process) {
  MovedModule moved;
  try {
    moved = moved_code_of(open_as, known.file.path, process);
    if (!moved.file.empty()) {
      // A process may look for it from another folder.
      known.code = fs::absolute(settings_.folder / fmt::format("{}.moved", known.file.number));
      base::OutputFile to(known.code);
      to.write(std::as_bytes(std::span(moved.file)));
      to.commit();
    }
  } catch (const base::Failure &failure) {
    known.file.why_not = failure.what();
    known.is_given_up = has_ended(process);
    if (!known.is_given_up)
      untraced_.push_back({fs::path(known.file.path).filename(), known.file.why_not});
    known.code.clear();
    moved = {};
  }
  known.file.is_moved = !known.code.empty();
  known.file.groups = static_cast<uint32_t>(moved.groups.size());
  known.file.singles = moved.singles;
  next_group_ += known.file.groups;
  const auto count = static_cast<uint64_t>(
      std::ranges::count(moved.functions, WhyUnmoved::moved, &MovedFunction::why));
  moved_functions_ += count;
  moved_files_ += count != 0;
  sink_.file(known.file, moved);
}

} // namespace trace
