// The driver must know three things of a command line that it does not otherwise understand: does
// it compile, does it link, and what does it make. Everything else passes through. Our flags come
// last where they must win (frame pointers) and first where the user's must (debug info, build id).

#include "compiler/command_line.h"

#include "abi/tools.h"
#include "compiler/linker_words.h"
#include "compiler/response_file.h"
#include "compiler/tool_flags.h"
#include "compiler/words.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

namespace assay::compiler {
namespace {

[[noreturn]] void refuse(const std::string &why) {
  throw std::runtime_error(why);
}

bool starts_with(std::string_view s, std::string_view prefix) {
  return s.substr(0, prefix.size()) == prefix;
}

bool is_one_of(std::string_view s, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), s) != list.end();
}

std::string tool_names(uint64_t tools = ~0ULL, const char *between = ", ") {
  std::string names;
  for (const ToolFlags *tool : tool_flags())
    if (tools & tool->tool)
      names += std::string(names.empty() ? "" : between) + tool->name;
  return names;
}

const ToolFlags *find_tool(std::string_view name) {
  auto tools = tool_flags();
  auto found = std::find_if(tools.begin(), tools.end(),
                            [&](const ToolFlags *tool) { return name == tool->name; });
  return found == tools.end() ? nullptr : *found;
}

uint64_t read_tools(std::string_view list) {
  uint64_t tools = 0;
  each_word(list, [&](std::string_view word) {
    const ToolFlags *tool = find_tool(word);
    if (!tool)
      refuse("-fassay=" + std::string(word) + ": no such tool in this version; there is " +
             tool_names());
    tools |= tool->tool;
  });
  if (!tools)
    refuse("-fassay=: it names no tool; there is " + tool_names());
  return tools;
}

// An archive of a well-known allocator: the program's malloc will be that one.
bool is_allocator_archive(std::string_view a) {
  size_t slash = a.rfind('/');
  std::string_view name = slash == std::string_view::npos ? a : a.substr(slash + 1);
  if (name.size() < 2 ||
      (name.substr(name.size() - 2) != ".a" && name.substr(name.size() - 2) != ".o"))
    return false;
  return name.find("jemalloc") != std::string_view::npos ||
         name.find("tcmalloc") != std::string_view::npos ||
         name.find("mimalloc") != std::string_view::npos;
}

// Options whose value is the next argument, as far as the question "is this an input?" needs it.
bool takes_next(std::string_view a) {
  return is_one_of(a, {"-o",           "-x",
                       "-I",           "-D",
                       "-U",           "-L",
                       "-l",           "-include",
                       "-imacros",     "-isystem",
                       "-iquote",      "-idirafter",
                       "-isysroot",    "-MF",
                       "-MT",          "-MQ",
                       "-Xclang",      "-Xlinker",
                       "-Xassembler",  "-Xpreprocessor",
                       "-mllvm",       "-T",
                       "-u",           "-z",
                       "-e",           "-target",
                       "-arch",        "-framework",
                       "-rpath",       "-soname",
                       "-B",           "-iprefix",
                       "-iwithprefix", "-iwithprefixbefore",
                       "--param",      "-Xanalyzer",
                       "--sysroot",    "-dumpdir",
                       "-ivfsoverlay"});
}

bool has_suffix(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  size_t dot = name.rfind('.');
  return dot != std::string_view::npos && is_one_of(name.substr(dot), suffixes);
}

bool is_own_flag(const std::string &a) {
  return starts_with(a, "-fassay") || starts_with(a, "-fheapprof") || a == "-fno-assay";
}

class Reader {
public:
  explicit Reader(CommandLine &line) : line_(line) {}

  void read(const std::vector<std::string> &arguments, bool keep) {
    for (size_t i = 0; i < arguments.size(); i++) {
      const std::string &a = arguments[i];
      if (keep && read_ours(a))
        continue;
      if (names_response_file(a)) { // stays as it is, unless clang would meet flags of ours in it
        std::vector<std::string> words = words_of_response_file(a.substr(1));
        bool has_ours = keep && std::any_of(words.begin(), words.end(), is_own_flag);
        if (keep && !has_ours)
          line_.rest.push_back(a);
        read(words, has_ours);
        continue;
      }
      if (keep)
        line_.rest.push_back(a);
      read_clang(a, i + 1 < arguments.size() ? arguments[i + 1] : "");
      if (takes_next(a) && i + 1 < arguments.size()) {
        i++;
        if (keep)
          line_.rest.push_back(arguments[i]);
      }
    }
  }

  void finish() {
    if (line_.other_machine) // the runtime is for x86-64 alone
      line_.tools = 0;
    line_.no_runtime = line_.no_runtime || linker_words_.relinks();
    has_library_ = has_library_ || linker_words_.names_archive();
    line_.links = !stops_early_ && (has_input_ || has_library_) && !makes_header_;
    line_.compiles = has_source_ && !only_preprocesses_;
    line_.excludes_tokens = std::ranges::any_of(sanitizers_, [](const std::string &each) {
      return each.starts_with("kernel-") || each.starts_with("memtag");
    });
    if (std::string other = other_malloc(); line_.tools && !other.empty())
      refuse(other + " and -fassay=" + tool_names(line_.tools, ",") +
             " both replace malloc; build one program for each");
    if (line_.tools && emulates_tls_)
      refuse("-femulated-tls: the runtime's thread-local variables are the linker's; drop it");
    if (line_.tools && !leaves_out_passes_.empty())
      refuse("-Xclang " + leaves_out_passes_ +
             ": this leaves out Assay's pass, too; drop it, or build with -fno-assay");
    if (line_.links && !line_.shared && no_libc_ && !has_libc_)
      line_.tools = 0; // the runtime needs libc
    // Libraries would not find the runtime's malloc, and the runtime takes theirs for another one. A static program has
    // no libraries.
    if (line_.links && !line_.shared && !line_.shared_runtime && !line_.is_static &&
        linker_words_.hides_runtime())
      line_.own_malloc = true;
    if (line_.tools && line_.links && line_.shared_runtime && line_.is_static)
      refuse("-static and -fassay-shared-runtime exclude each other; drop one of them");
    if (line_.tools && line_.links && line_.shared_runtime && line_.own_malloc)
      refuse("-fassay-wrap needs the runtime inside the program; drop -fassay-shared-runtime");
  }

private:
  static std::string readable(const std::string &path) {
    if (!std::ifstream(path))
      refuse("-fassay-ignorelist=" + path + ": the file cannot be read");
    return path;
  }

  // -fassay-NAME=LIST.
  bool read_mode(const std::string &a) {
    size_t equals = a.find('=');
    if (!starts_with(a, "-fassay-") || equals == std::string::npos)
      return false;
    const ToolFlags *tool = find_tool(std::string_view(a).substr(8, equals - 8));
    if (!tool)
      return false;
    uint32_t &mode = line_.modes[tool->name];
    mode = (mode & tool->dynamic_bit) | read_tool_mode(*tool, a.substr(equals + 1));
    return true;
  }

  // A flag of an older compiler, such as -fheapprof=DIR.
  bool read_alias(const std::string &a) {
    uint64_t tools = tools_of_alias(a);
    if (size_t equals = a.rfind('='); !tools && equals != std::string::npos) {
      tools = tools_of_alias(std::string_view(a).substr(0, equals));
      if (tools)
        line_.dir = a.substr(equals + 1);
    }
    line_.tools |= tools;
    return tools != 0;
  }

  bool read_ours(const std::string &a) {
    auto value = [&](std::string_view flag) { return a.substr(flag.size()); };
    if (a == "--help-assay")
      line_.help = true;
    else if (a == "-fassay")
      line_.tools = ASSAY_DEFAULT_TOOLS;
    else if (starts_with(a, "-fassay="))
      line_.tools = read_tools(value("-fassay="));
    else if (a == "-fno-assay")
      line_.tools = 0;
    else if (read_alias(a))
      return true;
    else if (a == "-fassay-naive")
      line_.naive = true;
    else if (a == "-fassay-exact")
      line_.exact = true;
    else if (a == "-fassay-precise-stacks")
      line_.precise_stacks = true;
    else if (a == "-fassay-shadow=fixed" || a == "-fassay-shadow=dynamic")
      for (const ToolFlags *tool : tool_flags()) {
        uint32_t &mode = line_.modes[tool->name];
        mode = (mode & ~tool->dynamic_bit) | (a.ends_with("fixed") ? 0 : tool->dynamic_bit);
      }
    else if (starts_with(a, "-fassay-shadow="))
      refuse(a + ": no such place; there is fixed and dynamic");
    else if (a == "-fassay-wrap")
      line_.own_malloc = true;
    else if (a == "-fassay-shared-runtime")
      line_.shared_runtime = true;
    else if (starts_with(a, "-fassay-ignorelist="))
      line_.ignore_lists.push_back(readable(value("-fassay-ignorelist=")));
    else if (read_mode(a))
      return true;
    else if (starts_with(a, "-fassay-"))
      refuse(a + ": there is no such flag; --help-assay lists them");
    else if (starts_with(a, "-fsanitize=efficiency-"))
      refuse(a + ": no such tool in this version; there is " + tool_names());
    else
      return false;
    return true;
  }

  void read_clang(std::string_view a, std::string_view next) {
    if (is_one_of(a, {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--analyze", "--precompile",
                      "-emit-ast", "-verify-pch", "--version", "-dumpversion", "-dumpmachine",
                      "-v"}) ||
        starts_with(a, "-print-") || starts_with(a, "--print-"))
      stops_early_ = stops_early_ || a != "-v";
    if (is_one_of(a, {"-E", "-M", "-MM", "-fsyntax-only"}))
      only_preprocesses_ = true;
    if (a == "-r")
      line_.no_runtime = true;
    linker_words_.read(a, next);
    if (a == "-m32" || (starts_with(a, "--target=") && !starts_with(a, "--target=x86_64")) ||
        ((a == "-target" || a == "--target") && !starts_with(next, "x86_64")))
      line_.other_machine = true;
    if (a == "-shared")
      line_.shared = true;
    if (a == "-static" || a == "-static-pie")
      line_.is_static = true;
    if (a == "-x")
      language_ = next,
      makes_header_ = makes_header_ || language_.find("-header") != std::string::npos;
    if (starts_with(a, "-fsanitize="))
      each_word(a.substr(11), [&](std::string_view word) { sanitizers_.emplace(word); });
    if (starts_with(a, "-fno-sanitize="))
      each_word(a.substr(14), [&](std::string_view word) {
        if (word == "all")
          sanitizers_.clear();
        sanitizers_.erase(std::string(word));
      });
    if (a == "-fmemory-profile" || starts_with(a, "-fmemory-profile="))
      memory_profile_ = "-fmemory-profile";
    if (a == "-fno-memory-profile")
      memory_profile_.clear();
    if (is_one_of(a, {"-femulated-tls", "-fno-emulated-tls"}))
      emulates_tls_ = a == "-femulated-tls";
    if (a == "-Xclang" && is_one_of(next, {"-disable-llvm-passes", "-disable-llvm-optzns"}))
      leaves_out_passes_ = next;
    if (is_one_of(a, {"-nostdlib", "-nodefaultlibs", "-nolibc"}))
      no_libc_ = true;
    if (a == "-lc" || a.find("libc.") != std::string_view::npos)
      has_libc_ = true;
    if (starts_with(a, "-l"))
      has_library_ = true;
    if (is_allocator_archive(a))
      line_.own_malloc = true;
    if (a.empty() || (a[0] == '-' && a != "-"))
      return;
    has_input_ = true;
    if (language_.empty() || language_ == "none") {
      makes_header_ = makes_header_ || has_suffix(a, {".h", ".hh", ".hpp", ".hxx", ".H"});
      has_source_ = has_source_ || !has_suffix(a, {".o", ".a", ".so", ".s", ".S", ".lo", ".ld"});
    } else {
      has_source_ = has_source_ || language_ != "assembler";
    }
  }

  // The flag whose runtime has a malloc of its own, or an empty word.
  std::string other_malloc() const {
    for (const char *bad : {"address", "memory", "thread", "hwaddress", "leak", "dataflow", "scudo",
                            "realtime", "type", "numerical"})
      if (sanitizers_.contains(bad))
        return std::string("-fsanitize=") + bad;
    return memory_profile_;
  }

  CommandLine &line_;
  bool stops_early_ = false, only_preprocesses_ = false, has_input_ = false, has_source_ = false;
  LinkerWords linker_words_;
  bool has_library_ = false, makes_header_ = false;
  bool no_libc_ = false, has_libc_ = false, emulates_tls_ = false;
  std::string memory_profile_;    // clang's own heap profiler, if it is asked for
  std::string leaves_out_passes_; // by this argument of clang's
  std::string language_;
  std::set<std::string> sanitizers_; // those that no later flag takes back
};

void add(std::vector<std::string> &to, std::initializer_list<std::string> more) {
  to.insert(to.end(), more);
}

// As words for the linker, or -x would make sources of archives.
void add_runtime(const CommandLine &line, const Installation &installation,
                 std::vector<std::string> &out) {
  if (line.shared_runtime) {
    add(out, {"-Wl,--push-state,--no-as-needed", "-Wl," + installation.file("libassay_preload.so"),
              "-Wl,--pop-state", "-Wl,-rpath," + installation.folder});
    return;
  }
  if (line.shared) {
    out.push_back("-Wl,-z,undefs"); // the runtime is in the executable
    return;
  }
  bool wraps = line.is_static || line.own_malloc;
  if (!line.is_static) // else there is nobody to export to
    out.push_back("-Wl,--dynamic-list=" +
                  installation.file(line.plus_plus ? "exports.list" : "exports-c.list"));
  add(out, {"-Wl,--whole-archive",
            "-Wl," + installation.file(wraps ? "libassay_rt_wrap.a" : "libassay_rt.a"),
            "-Wl,--no-whole-archive"});
  if (wraps) {
#define ASSAY_INTERPOSED(name) out.push_back("-Wl,--wrap=" #name);
#define ASSAY_INTERPOSED_DYNAMIC(name)                                                             \
  if (!line.is_static)                                                                             \
    out.push_back("-Wl,--wrap=" #name);
#define ASSAY_INTERPOSED_NEW(name, parameters, arguments)                                          \
  if (line.own_malloc)                                                                             \
    out.push_back("-Wl,--wrap=" #name);
#define ASSAY_INTERPOSED_DELETE ASSAY_INTERPOSED_NEW
#include "abi/interposed.def"
  }
  if (line.own_malloc) // an archive must give its malloc, though nobody but the wrapper refers to it
    add(out, {"-Wl,--defsym=__assay_own_malloc=1", "-Wl,-u,malloc"});
  // The runtime's operator new throws with the help of the C++ library that is linked in.
  auto has = [&](const char *word) {
    return std::find(line.rest.begin(), line.rest.end(), word) != line.rest.end();
  };
  bool cxx = line.plus_plus || has("-lstdc++");
  if (cxx && (line.is_static || has("-static-libstdc++")))
    out.push_back("-Wl,-u,_ZSt17__throw_bad_allocv");
}

} // namespace

CommandLine read_command_line(const std::vector<std::string> &arguments) {
  CommandLine line;
  line.tools = ASSAY_DEFAULT_TOOLS;
  Reader reader(line);
  reader.read(arguments, true);
  reader.finish();
  return line;
}

std::string Installation::file(const std::string &name) const {
  std::string path = folder + "/" + name;
  if (access(path.c_str(), R_OK) != 0)
    throw std::runtime_error("the file " + path + " is missing; build or install Assay again");
  return path;
}

std::vector<std::string> clang_arguments(const CommandLine &line,
                                         const Installation &installation) {
  // What programs include must be found in any case; it is empty where nothing is instrumented.
  std::vector<std::string> out = {"--start-no-unused-arguments", "-isystem",
                                  installation.file("include")};
  if (!line.tools) {
    out.push_back("--end-no-unused-arguments");
    out.insert(out.end(), line.rest.begin(), line.rest.end());
    return out;
  }
  // What follows a variable from store to store takes gigabytes for functions with thousands of checks.
  add(out, {"-g", "-Xclang", "-fexperimental-assignment-tracking=disabled"});
  if (line.links)
    out.push_back("-Wl,--build-id");
  const bool follows_allocations = std::ranges::any_of(tool_flags(), [&](const ToolFlags *tool) {
    return line.tools & tool->tool && tool->follows_allocations;
  });
  if (!line.excludes_tokens && follows_allocations)
    out.push_back("-fsanitize=alloc-token");
  add(out, {"-D__ASSAY__=1"});
  for (const ToolFlags *tool : tool_flags())
    if (line.tools & tool->tool) {
      std::string name = tool->name;
      std::transform(name.begin(), name.end(), name.begin(), ::toupper);
      out.push_back("-D__ASSAY_" + name + "__=1");
    }
  out.push_back("--end-no-unused-arguments");
  // After a bare -- everything is an input, so our flags come before it.
  auto inputs = std::find(line.rest.begin(), line.rest.end(), "--");
  // Before the program's own objects: functions in .preinit_array run in the order of the link, and the runtime's comes
  // first, before instrumented ones of the program. Only that: what the runtime defines comes after the program's
  // archives, which may define it too.
  if (line.links && !line.no_runtime && !line.shared) {
    add(out, {"-Wl,--whole-archive", "-Wl," + installation.file("libassay_start.a"),
              "-Wl,--no-whole-archive"});
    if (line.is_static) // an entry of the program's comes later, and wins
      out.push_back("-Wl,-e,__assay_static_start");
  }
  out.insert(out.end(), line.rest.begin(), inputs);
  out.push_back("--start-no-unused-arguments");
  if (follows_allocations)
    add(out, {"-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"});
  if (line.precise_stacks)
    out.push_back("-fno-optimize-sibling-calls");
  if (line.compiles) {
    std::string pass = installation.file("libassay_pass.so");
    add(out, {"-Xclang", "-load", "-Xclang", pass, "-fpass-plugin=" + pass});
    for (const ToolFlags *tool : tool_flags())
      if (line.tools & tool->tool && tool->clang_plugin)
        add(out, {"-fplugin=" + installation.file(tool->clang_plugin), "-fstandalone-debug",
                  "-gno-modules"});
    // By -Xclang to the compiler alone: what follows -mllvm goes to the assembler, too, which has no plugin.
    auto tell = [&](const std::string &option) {
      add(out, {"-Xclang", "-mllvm", "-Xclang", option});
    };
    if (line.naive)
      tell("-assay-naive");
    if (line.exact)
      tell("-assay-exact");
    if (!follows_allocations)
      tell("-assay-no-allocations");
    for (const auto &[tool, mode] : line.modes)
      if (mode)
        tell("-assay-" + tool + "=" + std::to_string(mode));
    tell("-assay-tools=" + std::to_string(line.tools));
    if (!line.dir.empty())
      tell("-assay-dir=" + line.dir);
    for (const std::string &list : line.ignore_lists) {
      tell("-assay-ignorelist=" + list);
      add(out, {"-Xclang", "-fdepfile-entry=" + list});
    }
  }
  out.push_back("--end-no-unused-arguments");
  if (line.links && !line.no_runtime)
    add_runtime(line, installation, out);
  out.insert(out.end(), inputs, line.rest.end());
  return out;
}

std::string flags_help() {
  constexpr const char *NONE = nullptr;
  std::ostringstream out;
  out << "assay-cc and assay-c++ take every argument of clang-22, and:\n";
  auto list = [&](const std::string &spelling, const char *value, const char *help) {
    std::string left = "  " + spelling + (value ? std::string("=") + value : "");
    out << left << std::string(left.size() < 30 ? 30 - left.size() : 1, ' ') << help << '\n';
  };
#define ASSAY_FLAG(spelling, argument, help) list(spelling, argument, help);
#include "compiler/flags.def"
  for (const ToolFlags *tool : tool_flags())
    if (!tool->modes.empty())
      list(std::string("-fassay-") + tool->name, "MODE,…", tool->help);
  return out.str();
}

} // namespace assay::compiler
