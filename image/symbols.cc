// Symbolization with LLVM's symbolizer, in process.
//
// The problem: a return address points behind the call, often to another line or even another
// function; and the file at the recorded path may have been rebuilt since. The idea: look up the
// byte before the return address, and compare build ids once a module before anything is asked of
// its debug info. Running llvm-symbolizer as a child was refused: a dependency on a second program,
// and a text protocol that loses linkage names.
//
// Names are asked for in their mangled form, because exports need it, and demangled here.

#include "image/symbols.h"

#include "image/crash_guard.h"
#include "image/executable.h"

#include "base/fail.h"

#include <llvm/DebugInfo/Symbolize/Symbolize.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <unistd.h>
#include <unordered_map>

namespace image {
namespace {

llvm::symbolize::LLVMSymbolizer::Options symbolizer_options() {
  llvm::symbolize::LLVMSymbolizer::Options options;
  options.PrintFunctions = llvm::DILineInfoSpecifier::FunctionNameKind::LinkageName;
  options.PathStyle = llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath;
  options.Demangle = false;
  options.UseSymbolTable = true;
  options.FallbackDebugPath = "/usr/lib/debug";
  return options;
}

bool is_file(const std::string &path) {
  return !path.empty() && path.front() == '/';
}

std::string known(const std::string &text) {
  return text == llvm::DILineInfo::BadString ? std::string() : text;
}

} // namespace

// The symbolizer takes "a(b)" for a member of an archive, and an architecture behind the last colon for the part of a
// file. Files of such names are read under another one, as long as this lives; debug files beside them are not found
// then, so no other name is changed.
class PlainNames {
public:
  // Throws base::Failure if the file cannot be opened.
  std::string of(const std::string &file) {
    if (!reads_as_part(file))
      return file;
    const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0)
      base::fail("{}: it cannot be opened ({}), so its frames have no names", file,
                 std::strerror(errno));
    open_.push_back(opened);
    return fmt::format("/proc/self/fd/{}", opened);
  }
  PlainNames() = default;
  PlainNames(const PlainNames &) = delete;
  PlainNames &operator=(const PlainNames &) = delete;
  ~PlainNames() {
    for (int each : open_)
      ::close(each);
  }

private:
  static bool reads_as_part(const std::string &file) {
    const llvm::StringRef name = file;
    if (name.ends_with(")") && name.contains('('))
      return true;
    const size_t colon = name.rfind(':');
    return colon != llvm::StringRef::npos &&
           llvm::Triple(name.substr(colon + 1)).getArch() != llvm::Triple::UnknownArch;
  }

  std::vector<int> open_;
};

struct Symbols::State {
  std::vector<ModuleFile> modules;
  PlainNames plain_names;
  std::vector<int8_t> usable;     // -1: not looked at yet
  std::vector<std::string> files; // that are read: of usable modules
  std::vector<std::string> notes;
  // By module, and one more for what belongs to none; by return address.
  std::vector<std::unordered_map<uint64_t, CallStack>> calls;
  std::map<uint32_t, Data> data;
  std::map<uint32_t, std::vector<CodeRange>> functions;
  std::unique_ptr<llvm::symbolize::LLVMSymbolizer> symbolizer = new_symbolizer();

  static std::unique_ptr<llvm::symbolize::LLVMSymbolizer> new_symbolizer() {
    return std::make_unique<llvm::symbolize::LLVMSymbolizer>(symbolizer_options());
  }

  // Asks the symbolizer about a usable module, which is usable no longer if that crashes.
  bool ask(uint32_t module, llvm::function_ref<void()> question) {
    if (ends_well(question))
      return true;
    usable[module] = false;
    // It is left in the middle of something, and must not be destroyed.
    [[maybe_unused]] auto *abandoned = symbolizer.release();
    symbolizer = new_symbolizer();
    notes.push_back(fmt::format("{}: its debug info is damaged, so its frames have no names; "
                                "build it again",
                                modules[module].path));
    return false;
  }

  bool is_usable(uint32_t module) {
    if (usable[module] < 0)
      usable[module] = look_at(modules[module], files[module]);
    return usable[module];
  }

  bool look_at(const ModuleFile &module, std::string &file) {
    if (!is_file(module.path)) // [vdso], an anonymous mapping
      return false;
    if (auto found = file_with(module.build_id, module.path, module.kept)) {
      try {
        file = plain_names.of(*found);
      } catch (const base::Failure &failure) {
        notes.emplace_back(failure.what());
        return false;
      }
      return true;
    }
    PresenceCheck check = check_presence(module.path, module.build_id);
    std::string wanted = module.build_id.empty()
                             ? std::string("of the run")
                             : "with build id " + build_id_text(module.build_id);
    notes.push_back(
        check.presence == Presence::missing
            ? fmt::format("{}: the file {} is not there, so its frames have no names; put it back",
                          module.path, wanted)
            : fmt::format(
                  "{}: the file has changed since the run (build id {}), so its frames have "
                  "no names; put back the one {}, or run the program again",
                  module.path, build_id_text(check.found), wanted));
    return false;
  }

  CallStack look_up(uint32_t module, uint64_t address) {
    std::vector<Frame> frames;
    const std::string path = module == kNoModule ? std::string() : modules[module].path;
    if (module != kNoModule && is_usable(module)) {
      bool asked = ask(module, [&] {
        auto info = symbolizer->symbolizeInlinedCode(
            files[module], {address, llvm::object::SectionedAddress::UndefSection});
        if (!info)
          llvm::consumeError(info.takeError());
        else
          for (uint32_t index = 0; index < info->getNumberOfFrames(); index++)
            frames.push_back(frame_of(info->getFrame(index), path, address,
                                      index + 1 < info->getNumberOfFrames()));
      });
      if (!asked)
        frames.clear();
    }
    if (frames.empty())
      frames.emplace_back();
    CallStack call;
    for (Frame &frame : frames) {
      frame.module = path;
      frame.address = address;
      if (frame.function.empty())
        frame.function = path.empty() ? fmt::format("{:#x}", address)
                                      : fmt::format("{}+{:#x}", base_name(path), address);
      call.push_back(std::move(frame));
    }
    return call;
  }

  const std::vector<CodeRange> &functions_of(uint32_t module) {
    auto [known, is_new] = functions.try_emplace(module);
    if (is_new && is_usable(module))
      try {
        known->second = Executable(files[module]).functions();
      } catch (const base::Failure &) { // no executable, or damaged: symbols are all there is
      }
    return known->second;
  }

  static Frame frame_of(const llvm::DILineInfo &info, const std::string &path, uint64_t address,
                        bool inlined) {
    Frame frame;
    frame.linkage_name = known(info.FunctionName);
    frame.function = llvm::demangle(frame.linkage_name);
    frame.file = known(info.FileName);
    frame.line = info.Line;
    frame.column = info.Column;
    // LLVM does not find it of some functions that GCC has compiled: mostly it is the file of their code.
    frame.function_file = known(info.StartFileName.empty() ? info.FileName : info.StartFileName);
    frame.function_start_line = info.StartLine;
    frame.module = path;
    frame.address = address;
    frame.inlined = inlined;
    return frame;
  }
};

Symbols::Symbols(std::vector<ModuleFile> modules) : state_(std::make_unique<State>()) {
  state_->usable.assign(modules.size(), -1);
  state_->files.resize(modules.size());
  state_->calls.resize(modules.size() + 1);
  state_->modules = std::move(modules);
}
Symbols::~Symbols() = default;
Symbols::Symbols(Symbols &&) noexcept = default;

const CallStack &Symbols::call(uint32_t module, uint64_t return_address) {
  size_t modules = state_->modules.size();
  if (module >= modules)
    module = kNoModule;
  auto [answer, is_new] =
      state_->calls[std::min<size_t>(module, modules)].try_emplace(return_address);
  if (is_new)
    answer->second = state_->look_up(module, return_address ? return_address - 1 : 0);
  return answer->second;
}

std::optional<uint64_t> Symbols::function_begin(uint32_t module, uint64_t address) {
  if (module >= state_->modules.size())
    return std::nullopt;
  const CodeRange *function = function_at(state_->functions_of(module), address);
  return function ? std::optional(function->begin) : std::nullopt;
}

std::string Symbols::stub(uint32_t module, uint64_t address) {
  if (module >= state_->modules.size())
    return "";
  const CodeRange *function = function_at(state_->functions_of(module), address);
  return !function || function->found_by != FoundBy::plt ? ""
         : function->name.empty()                        ? "plt"
                                                         : function->name;
}

const Data &Symbols::data(uint32_t module) {
  auto [answer, is_new] = state_->data.try_emplace(module);
  if (is_new && module < state_->modules.size() && state_->is_usable(module))
    answer->second = image::data(state_->files[module]);
  return answer->second;
}

Declaration Symbols::declaration(uint32_t module, uint64_t address) {
  if (module >= state_->modules.size() || !state_->is_usable(module))
    return {};
  Declaration declaration;
  bool asked = state_->ask(module, [&] {
    auto found = state_->symbolizer->symbolizeData(
        state_->files[module], {address, llvm::object::SectionedAddress::UndefSection});
    if (!found)
      llvm::consumeError(found.takeError());
    else
      declaration = {known(found->DeclFile), static_cast<uint32_t>(found->DeclLine)};
  });
  return asked ? declaration : Declaration();
}

std::string demangled(const std::string &linkage_name) {
  return llvm::demangle(linkage_name);
}

const std::vector<ModuleFile> &Symbols::modules() const {
  return state_->modules;
}
const std::vector<std::string> &Symbols::notes() const {
  return state_->notes;
}

std::string base_name(const std::string &path) {
  size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

} // namespace image
