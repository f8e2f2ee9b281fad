// assay-cc and assay-c++: clang with Assay's plugin and runtime. Called by the second name it is
// clang++, and by two more LLVM's archiver. It finds its installation relative to itself, rewrites
// the command line and becomes clang; it never looks at what clang does, so that everything clang
// can do works.

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/command_line.h"

namespace {

using namespace assay::compiler;

int complain(const std::string &what) {
  fprintf(stderr, "assay: %s\n", what.c_str());
  return 2;
}

std::string own_folder() {
  std::array<char, 4096> path;
  ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  std::string whole(path.data(), n > 0 ? (size_t)n : 0);
  if (n <= 0 && realpath((const char *)getauxval(AT_EXECFN), path.data())) // no /proc
    whole = path.data();
  return whole.substr(0, whole.rfind('/'));
}

// A plugin works only in the clang that it was built for.
void check_version(const std::string &clang) {
  // NOLINTNEXTLINE(bugprone-command-processor): the user's own word in the user's own shell
  FILE *out = popen(("'" + clang + "' -dumpversion 2>/dev/null").c_str(), "r");
  std::array<char, 64> version = {};
  if (out) {
    if (!fgets(version.data(), version.size(), out))
      version[0] = 0;
    pclose(out);
  }
  if (strncmp(version.data(), "22.", 3) != 0)
    throw std::runtime_error("ASSAY_CLANG=" + clang +
                             " is not clang 22, which the plugin was built for; unset it");
}

int become_clang(bool plus_plus, const std::vector<std::string> &arguments) {
  std::vector<std::string> words;
  if (const char *chosen = getenv("ASSAY_CLANG")) {
    check_version(chosen);
    words = {chosen, plus_plus ? "--driver-mode=g++" : "--driver-mode=gcc"};
  } else {
    words = {plus_plus ? "clang++-22" : "clang-22"};
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char *> argv;
  argv.reserve(words.size() + 1);
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return complain("cannot run " + words[0] + " (" + strerror(errno) +
                  "); install it with `apt-get install clang-22`");
}

// CMake takes "assay-" for the prefix of a toolchain, and looks for assay-llvm-ar and assay-llvm-ranlib.
int become_archiver(const std::string &name, char **argv) {
  std::string tool = name.substr(name.find("llvm-")) + "-22";
  argv[0] = tool.data();
  execvp(argv[0], argv);
  return complain("cannot run " + tool + " (" + strerror(errno) +
                  "); install it with `apt-get install llvm-22`");
}

} // namespace

int main(int argc, char **argv) {
  try {
    std::string name = argv[0];
    name = name.substr(name.rfind('/') + 1);
    if (name.find("llvm-") != std::string::npos)
      return become_archiver(name, argv);
    CommandLine line = read_command_line({argv + 1, argv + argc});
    line.plus_plus = name.find("++") != std::string::npos;
    if (line.help) {
      fputs(flags_help().c_str(), stdout);
      return 0;
    }
    return become_clang(line.plus_plus,
                        clang_arguments(line, Installation{own_folder() + "/../lib/assay"}));
  } catch (const std::exception &e) {
    return complain(e.what());
  }
}
