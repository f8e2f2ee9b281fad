// Names of what a profile knows by number: the frames of a stack, with those that the compiler inlined, types, modules.
//
// There are many stacks, and one call may be several frames. So the frames are counted first, and
// room is taken for just as many: the room that a growing vector leaves unused would be half of the
// memory. A stack of no frames is "(no stack)", a type of which only the short id is known shows
// that id.

#include "analyze/frame.h"

#include "base/fail.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace analyze {

CallStack frames_of(const profile::Profile &profile, profile::StackId stack,
                    image::Symbols &symbols) {
  std::vector<const CallStack *> calls;
  size_t size = 0;
  for (const profile::CodeLocation &location : profile.stack(stack).frames) {
    uint32_t module = location.module.known() ? location.module.v : image::Symbols::kNoModule;
    calls.push_back(&symbols.call(module, location.offset));
    size += calls.back()->size();
  }
  CallStack frames;
  frames.reserve(size); // there are many stacks: room to grow would be half of the memory
  for (const CallStack *call : calls)
    frames.append(*call);
  if (frames.empty()) {
    image::Frame nothing;
    nothing.function = "(no stack)";
    frames.push_back(std::move(nothing));
  }
  return frames;
}

std::string program_build_id(const profile::Profile &profile, const profile::Process &process) {
  const profile::Module *program = profile.program_of(process);
  return program ? image::build_id_text(program->build_id) : "";
}

std::vector<std::string> program_names(const profile::Profile &profile) {
  std::map<std::string, std::set<std::string>> build_ids; // by path
  for (const profile::Process &process : profile.processes)
    if (!process.executable.empty())
      build_ids[process.executable].insert(program_build_id(profile, process));
  std::vector<std::string> names;
  for (const auto &[path, ids] : build_ids)
    for (const std::string &id : ids)
      names.push_back(ids.size() == 1 ? path : fmt::format("{} ({})", path, id));
  return names;
}

std::optional<std::string> note_of_programs(const profile::Profile &profile) {
  const std::vector<std::string> names = program_names(profile);
  if (names.size() < 2)
    return std::nullopt;
  return fmt::format("this is the sum of {} programs ({}), in which what has the same name is one; "
                     "name their own profiles, and each program is answered by itself",
                     names.size(), fmt::join(names, ", "));
}

std::set<std::string> program_file_names(const profile::Profile &profile) {
  std::set<std::string> names;
  for (const profile::Process &process : profile.processes)
    if (!process.executable.empty())
      names.insert(base_name(process.executable));
  return names;
}

std::optional<std::string> note_of_comparison(const std::set<std::string> &older,
                                              const std::set<std::string> &newer) {
  const bool is_shared =
      std::ranges::any_of(older, [&](const std::string &name) { return newer.contains(name); });
  if (is_shared || older.empty() || newer.empty())
    return std::nullopt;
  return fmt::format(
      "the runs are of different programs (old: {}; new: {}): what has the same name "
      "in both is compared as if it were one",
      fmt::join(older, ", "), fmt::join(newer, ", "));
}

std::vector<std::string> notes_of(const profile::Profile &profile) {
  std::vector<std::string> notes = profile.notes;
  if (auto note = note_of_programs(profile))
    notes.push_back(*note);
  return notes;
}

std::string type_name(const profile::Profile &profile, profile::TypeId id) {
  if (!id.known())
    return "";
  const profile::Type &type = profile.types[id.v];
  return type.name.empty() ? fmt::format("type {:#x}", type.hash) : type.name;
}

bool is_scalar(const std::string &type) {
  static const std::set<std::string> kWords = {
      "char",     "short",    "int",       "long",     "unsigned", "signed",  "double",
      "float",    "bool",     "_Bool",     "void",     "__int128", "wchar_t", "char8_t",
      "char16_t", "char32_t", "std::byte", "_Float16", "__bf16",   "uint8_t", "int8_t"};
  static const std::set<std::string> kQualifiers = {"const", "volatile", "restrict", "__restrict",
                                                    "_Atomic"};
  std::istringstream words(type.substr(0, type.find('[')));
  bool any = false;
  for (std::string word; words >> word;)
    if (kWords.count(word))
      any = true;
    else if (!kQualifiers.count(word))
      return false;
  return any;
}

std::vector<image::ModuleFile> module_files(const profile::Profile &profile) {
  std::vector<image::ModuleFile> files;
  files.reserve(profile.modules.size());
  for (const profile::Module &module : profile.modules)
    files.push_back({module.path, module.build_id, module.kept});
  return files;
}

} // namespace analyze
