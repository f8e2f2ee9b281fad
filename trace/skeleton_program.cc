// Functions that were executed become C, some in each file, so that a compiler can work on several
// at a time. What the threads logged becomes a file of pieces that main.c reads from one end to the
// other.

#include "trace/skeleton_program.h"

#include "base/fail.h"
#include "base/output_file.h"
#include "base/units.h"
#include "trace/c/values_format.h"
#include "trace/skeleton_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace trace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTextOfFile = 150'000; // bytes

void write_text(const fs::path &path, const std::string &text) {
  base::OutputFile file(path.string());
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void take_copy(const fs::path &from, const fs::path &to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error)
    base::fail("{}: it cannot be copied to {}: {}", from.string(), to.string(), error.message());
}

void create(const fs::path &folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    base::fail("{}: the folder cannot be made: {}", folder.string(), error.message());
}

// Pieces, as main.c reads them.
class Values : public LoggedSink {
public:
  Values(const Trace &trace, const fs::path &path) : trace_(trace), file_(path.string()) {
    file_.write(std::as_bytes(std::span(VALUES_MAGIC, 8)));
    for (const TracedFile &file : trace.files())
      files_ = std::max(files_, file.number);
  }
  void begin(const TracedStream &stream) override {
    std::vector<uint64_t> first = {stream.thread_base};
    for (uint32_t file = 0; file <= files_; file++)
      first.push_back(file ? trace_.bias_of(stream.program, file) : 0);
    piece(PIECE_STREAM, stream, std::as_bytes(std::span(first)));
  }
  void logged(const TracedStream &stream, std::span<const std::byte> bytes) override {
    piece(PIECE_LOGGED, stream, bytes);
    written += bytes.size();
  }
  void end(const TracedStream &stream, bool went_on) override {
    piece(went_on ? PIECE_ENDED : PIECE_CUT, stream, {});
  }
  void commit() { file_.commit(); }
  uint64_t written = 0;

private:
  void piece(uint32_t kind, const TracedStream &stream, std::span<const std::byte> bytes) {
    const struct piece head = {kind, stream.thread, bytes.size()};
    file_.write(std::as_bytes(std::span(&head, 1)));
    file_.write(bytes);
  }
  const Trace &trace_;
  base::OutputFile file_;
  uint32_t files_ = 0;
};

class Program {
public:
  Program(const Trace &trace, const fs::path &folder)
      : trace_(trace), folder_(folder), executed_(trace.executed_groups()) {}

  void write() {
    for (size_t f = 0; f < trace_.files().size(); f++)
      file(f);
    std::string text = "// Which function a number begins.\n#include \"skeleton.h\"\n\n";
    for (const Start &start : starts_)
      if (start.is_first)
        text += fmt::format("void {}(struct stream *s, int start);\n", start.function);
    text += "\nconst struct start starts[] = {\n";
    for (const Start &start : starts_)
      text += fmt::format("  {{{}, {}, {}, {}}},\n", start.number, start.bytes, start.at,
                          start.function);
    text += fmt::format("}};\nconst uint64_t starts_count = {};\n", starts_.size());
    write_text(folder_ / "starts.c", text);
    made_.push_back("starts");
    std::string objects = "main.o";
    for (const std::string &each : made_)
      objects += " " + each + ".o";
    write_text(folder_ / "Makefile",
               fmt::format("CFLAGS ?= -O1\nskeleton: {0}\n\t$(CC) $(CFLAGS) -o $@ {0}\n"
                           "%.o: %.c skeleton.h values_format.h micro_ops.h\n\t$(CC) -std=c11 -I. "
                           "$(CFLAGS) -c -o $@ $<\n"
                           "clean:\n\trm -f skeleton *.o\n",
                           objects));
  }
  SkeletonProgram sums;

private:
  struct Start {
    uint32_t number, bytes;
    size_t at;
    std::string function;
    bool is_first;
  };

  void file(size_t f) {
    const TracedFile &file = trace_.files()[f];
    const FileDefinitions definitions = trace_.definitions_of(f);
    file_ = &file;
    begins_.clear();
    for (const MovedFunction &function : trace_.functions_of(f)) {
      begins_[function.address] = &function;
      for (const MovedFunction::Part &part : function.apart)
        begins_[part.begin] = &function;
    }
    std::map<uint32_t, std::vector<SkeletonStart>> by_skeleton;
    for (uint32_t g = 0; g < definitions.groups.size(); g++) {
      const Group &group = definitions.groups[g];
      const uint32_t number = file.first_group + g;
      if (!executed_[number])
        continue;
      if (!group.start) {
        add(group, number);
        continue;
      }
      SkeletonStart start{number, group.start->block, {}};
      for (const GroupValue &value : group.values)
        start.registers.push_back(value.reg);
      by_skeleton[group.start->skeleton].push_back(std::move(start));
    }
    for (const auto &[number, starts] : by_skeleton)
      add(definitions.skeletons.at(number), number, starts);
    flush();
    number_ = 0;
  }

  void add(const Skeleton &skeleton, uint32_t number, const std::vector<SkeletonStart> &starts) {
    for (const SkeletonBlock &block : skeleton.blocks)
      for (const SkeletonStep &step : block.steps)
        check(step.pc, step.size);
    const std::string function =
        fmt::format("f{}_{:x}_{}", file_->number, skeleton.address, number);
    comment(skeleton.address);
    text_ += skeleton_text(skeleton, function, starts);
    for (size_t i = 0; i < starts.size(); i++)
      starts_.push_back({starts[i].number, static_cast<uint32_t>(8 * starts[i].registers.size()), i,
                         function, i == 0});
    added();
  }

  void add(const Group &group, uint32_t number) {
    for (const GroupAccess &access : group.accesses)
      check(access.pc, access.size);
    const std::string function = fmt::format("g{}_{}", file_->number, number);
    if (!group.accesses.empty())
      comment(group.accesses.front().pc);
    text_ += group_text(group, function);
    starts_.push_back({number, static_cast<uint32_t>(8 * group.values.size()), 0, function, true});
    added();
  }

  void check(uint64_t pc, uint64_t size) const {
    if (file_->number >> ACCESS_FILE_BITS || pc >> ACCESS_PC_BITS || size >> ACCESS_SIZE_BITS)
      base::fail("{}: an access of {} at {:#x} of file {} does not fit into the accesses of "
                 "skeletons; replay the trace by `assay trace replay` instead",
                 file_->path, base::with_noun(size, "byte"), pc, file_->number);
  }

  void comment(uint64_t address) {
    const auto after = begins_.upper_bound(address);
    std::string name = after != begins_.begin() ? std::prev(after)->second->name : "";
    std::replace_if(name.begin(), name.end(), [](char c) { return c < ' ' || c == '\\'; }, '?');
    text_ += fmt::format("\n// {}{:#x}\n", name.empty() ? "" : name + ", ", address);
  }

  void added() {
    sums.functions++;
    if (text_.size() > kTextOfFile)
      flush();
  }

  void flush() {
    if (text_.empty())
      return;
    const std::string name = fmt::format("file{}_{}", file_->number, number_++);
    write_text(folder_ / (name + ".c"),
               fmt::format("// {}\n#include \"skeleton.h\"\n\nFILE_NUMBER({});\n", file_->path,
                           file_->number) +
                   text_);
    made_.push_back(name);
    sums.files++;
    text_.clear();
  }

  const Trace &trace_;
  const fs::path &folder_;
  const std::vector<bool> executed_;
  const TracedFile *file_ = nullptr;
  std::map<uint64_t, const MovedFunction *> begins_; // of functions and their parts
  std::string text_;
  uint32_t number_ = 0; // of the file of C, among those of one traced file
  std::vector<std::string> made_;
  std::vector<Start> starts_;
};

} // namespace

SkeletonProgram write_skeleton_program(const Trace &trace, const fs::path &support,
                                       const fs::path &folder) {
  create(folder / "abi");
  for (const char *name : {"skeleton.h", "values_format.h", "micro_ops.h", "main.c", "abi/uops.def",
                           "abi/uop_integer.h"})
    take_copy(support / name, folder / name);
  Program program(trace, folder);
  program.write();
  Values values(trace, folder / "values");
  trace.logged_by_thread(values);
  values.commit();
  program.sums.bytes_of_values = values.written;
  return program.sums;
}

} // namespace trace
