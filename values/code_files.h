// The files that sampled code comes from: each is opened once, whoever maps it.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"
#include "image/executable.h"
#include "values/caller_rules.h"
#include "values/process_maps.h"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace values {

// A file that code came from, or memory without a file ("[vdso]", "[code made by 1234]"). A
// function of the kernel's is one of its own ("[kernel] do_syscall_64"), because its place is known
// only while that kernel runs; so is one of the vdso ("[vdso] __vdso_getcpu"), and one of code that a
// process makes, if the process tells it ("[code made by 1234] step loop.js:2").
struct CodeFile {
  std::string path;
  std::vector<uint8_t> build_id;
};

struct CodePlace {
  uint32_t file = 0; // index in CodeFiles::all()
  uint64_t offset =
      0; // address as linked; of code without a file, relative to where its mapping begins
};

// A part of a function that the compiler has put elsewhere: no call comes to its begin.
bool is_cold_part(const image::CodeRange &function);

class CodeFiles {
public:
  struct Opened {
    std::unique_ptr<image::Executable> executable; // none: it is no ELF file for this machine
    std::unique_ptr<CallerRules> caller_rules;     // made when they are asked for
    CodeFile file;
    struct stat status = {}; // when it was opened
    uint32_t index = kNone;  // in all(); kNone: nothing has come from it yet
    uint64_t uses = 0;       // pages that became known
    bool is_needed = false;  // by what is kept of its pages
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  // To be called before any file is opened: what tells callers, and functions by their names, is kept of each.
  void keep_callers() { keeps_callers_ = true; }

  // For another recording: numbers begin anew. Of what was opened, what is needed stays open, and of
  // the others those that were used most, so many in all; none that is not the same any more.
  void begin_anew(size_t most_kept);

  // Where a file of this build is: of several copies the one that most code came from, of those that
  // are still where they were.
  std::string path_of_build(const CodeFile &file) const;

  const std::vector<CodeFile> &all() const { return files_; }
  size_t opened() const { return opened_.size(); }
  // The index of what is no file, by its name.
  uint32_t named(const std::string &name);
  // Whether what is mapped there by now is the file that a miss came to.
  static bool is_mapped(const assay_miss &miss, const MappedRange &range);
  // The file that a miss came to; null if the process is gone, or does not map it there any more.
  Opened *open(const assay_miss &miss, ProcessMaps &maps);
  // The file that a page's key names, if it is open and an executable; else null.
  Opened *use(const assay_code_key &key);
  // Where an address in a mapped range is, if the file was opened.
  std::optional<CodePlace> place_in(const MappedRange &range, uint64_t address);

  // Where a page of a file is linked: in the executable segment that covers it.
  static std::optional<uint64_t> linked(const image::Executable &executable, uint64_t offset);

private:
  struct Key {
    uint64_t file = 0;
    uint32_t device = 0, version = 0;
    friend auto operator<=>(const Key &, const Key &) = default;
  };

  uint32_t number(Opened &opened);

  bool keeps_callers_ = false;
  std::vector<CodeFile> files_;
  std::map<Key, std::unique_ptr<Opened>> opened_;
  std::map<std::string, uint32_t> named_; // what is no file: index in files_
};

} // namespace values
