// The files that recorded processes load: each is moved once (moved_code.h), written where
// processes can map it, and told to the sink.
#pragma once

#include "trace/moved_cache.h"
#include "trace/recording_settings.h"
#include "trace/trace_data.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace trace {

class MovedFiles {
public:
  // Both must outlive this.
  MovedFiles(const RecordingSettings &settings, TraceSink &sink);
  ~MovedFiles();
  MovedFiles(const MovedFiles &) = delete;
  MovedFiles &operator=(const MovedFiles &) = delete;

  struct File {
    TracedFile file;            // number 0: it is none
    std::filesystem::path code; // empty: nothing was moved
    bool is_given_up = false;   // who asked has ended meanwhile
  };
  // What `process` has loaded by this name; by an empty one its executable. Moves it unless it is
  // known, which may take seconds. The reference holds until forget_given_up().
  const File &find(const std::string &loaded_as, uint32_t process);
  // Who asks for one of these next starts anew.
  void forget_given_up();
  // Nobody will map what was written.
  void remove();

  uint64_t count() const { return next_file_ - 1; }
  uint64_t moved_functions() const { return moved_functions_; }
  // Files that have such a function.
  uint64_t moved_files() const { return moved_files_; }
  // Names of executables.
  const std::set<std::string> &programs() const { return programs_; }
  // What was asked for by name, and no file had, or was.
  std::vector<std::string> missing_functions() const;
  std::vector<std::string> missing_modules() const;
  // Files that could not be read, or whose moved code could not be written, and why.
  struct Untraced {
    std::string name, why;
  };
  const std::vector<Untraced> &untraced() const { return untraced_; }

private:
  // By its name, or by where it is.
  bool was_asked_for(const std::string &path);
  void move(File &known, const std::string &open_as, uint32_t process);
  MovedModule moved_code_of(const std::string &open_as, const std::string &path, uint32_t process);

  const RecordingSettings &settings_;
  TraceSink &sink_;
  MovedCache cache_;                  // of nothing where functions are chosen
  std::map<std::string, File> files_; // by what tells files apart
  std::vector<Untraced> untraced_;
  std::set<std::string> programs_;
  std::set<std::string> found_functions_, found_modules_; // of those that were asked for
  uint32_t next_group_ = 0, next_file_ = 1;
  uint64_t moved_functions_ = 0, moved_files_ = 0;
};

} // namespace trace
