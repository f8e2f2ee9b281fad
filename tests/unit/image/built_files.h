// Files that a test builds, and what other programs print of them.
#pragma once

#include "image/executable.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace image_tests {

// Prints where each exception goes: the program's own _Unwind_SetIP is called by the personality
// routine instead of the unwinder's, and passes on to it.
inline const char *const kSource = R"(
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <unwind.h>
extern "C" const char __executable_start;
#ifdef WATCH
extern "C" __attribute__((visibility("default"))) void _Unwind_SetIP(_Unwind_Context *context,
                                                                     _Unwind_Ptr target) {
  auto real = reinterpret_cast<void (*)(_Unwind_Context *, _Unwind_Ptr)>(
      dlsym(RTLD_NEXT, "_Unwind_SetIP"));
  unsigned long start = reinterpret_cast<unsigned long>(&__executable_start) - BASE;
  std::printf("%lx %lx\n", (unsigned long)_Unwind_GetIP(context) - start,
              (unsigned long)target - start);
  real(context, target);
}
#endif
struct Guard { ~Guard() { std::putchar('\n'); } };
static __attribute__((noinline)) void thrower(int n) {
  Guard guard;
  if (n > 0)
    throw std::runtime_error("positive");
  if (n < -1)
    throw n;
}
__attribute__((noinline)) int catcher(int n) {
  try {
    Guard guard;
    thrower(n);
  } catch (const std::exception &e) {
    return e.what()[0];
  } catch (...) {
    return 2;
  }
  return 1;
}
__attribute__((noinline)) static int other(int n) { return n * 3; }
int (*table[])(int) = {catcher, other};
int (*imported)(const char *) = std::puts;
extern "C" void without_frame();
__asm__(".text\n.globl without_frame\n.type without_frame,@function\n"
        "without_frame: nop\nnop\nret\n.size without_frame, .-without_frame\n");
int main(int count, char **) {
  without_frame();
  int sum = count == 77 ? imported("x") : 0;
  for (int n = -3; n < 3; n++)
    sum += table[0](n) + table[1](n);
  return sum == 0;
}
)";

inline std::string output_of(const std::string &command) {
  std::string text;
  FILE *pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part;
  for (size_t size; pipe && (size = fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), size);
  if (pipe)
    pclose(pipe);
  return text;
}

inline std::vector<std::vector<std::string>> words_of(const std::string &command) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream text(output_of(command));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;)
      lines.back().push_back(word);
  }
  return lines;
}

inline uint64_t number(const std::string &hex) {
  return std::stoull(hex, nullptr, 16);
}

inline std::vector<std::byte> content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Ranges follow each other, and each is found by its first and last address.
inline void expect_ordered(const image::Executable &executable) {
  uint64_t end = 0;
  for (const image::CodeRange &each : executable.functions()) {
    EXPECT_LE(end, each.begin);
    EXPECT_LT(each.begin, each.end);
    EXPECT_TRUE(executable.executable_at(each.begin));
    EXPECT_TRUE(executable.executable_at(each.end - 1));
    EXPECT_EQ(executable.function_at(each.begin), &each);
    EXPECT_EQ(executable.function_at(each.end - 1), &each);
    end = each.end;
  }
}

class BuiltFiles {
public:
  std::string in(const std::string &name) const { return folder_.in(name); }
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(in(name)) << text;
    return in(name);
  }
  std::string built(const std::string &name, const std::string &command, const std::string &source,
                    const char *suffix = ".cc") const {
    write(name + suffix, source);
    EXPECT_EQ(
        std::system((command + " -o " + in(name) + " " + in(name) + suffix + " 2>&1").c_str()), 0);
    return in(name);
  }

private:
  TemporaryFolder folder_;
};

class Files : public testing::Test {
protected:
  BuiltFiles files_;
  std::string built(const std::string &command, const std::string &assembler) const {
    return files_.built("assembled", command + " -nostdlib", assembler, ".s");
  }
};

} // namespace image_tests
