// What image::Executable says of programs that the test builds, compared with what binutils say of
// them, and with where their own exceptions go when they run.

#include "image/executable.h"

#include "image/crash_guard.h"
#include "image/elf.h"
#include "image/encoded_pointer.h"
#include "image/layout.h"
#include "image/section_check.h"

#include "base/fail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using image::CodeRange;
using image::Executable;
using image::FoundBy;
using Ranges = std::set<std::pair<uint64_t, uint64_t>>;

// Prints where each exception goes: the program's own _Unwind_SetIP is called by the personality
// routine instead of the unwinder's, and passes on to it.
const char *const kSource = R"(
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

struct Build {
  const char *name, *command;
  bool is_static = false;
};

void PrintTo(const Build &build, std::ostream *out) {
  *out << build.command;
}

const Build kBuilds[] = {
    {"gcc_pie", "g++ -O2 -pie -fPIE"},
    {"gcc_no_pie", "g++ -O2 -no-pie -fno-pie"},
    {"gcc_debug", "g++ -O0 -g"},
    {"gcc_now", "g++ -O2 -Wl,-z,now -fno-plt"},
    {"gcc_ibt", "g++ -O2 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy"},
    {"gcc_one_segment", "g++ -O2 -no-pie -fno-pie -Wl,-z,noseparate-code"},
    {"gcc_relr", "g++ -O2 -pie -fPIE -Wl,-z,pack-relative-relocs"},
    {"gcc_static", "g++ -O2 -static", true},
    {"gcc_static_pie", "g++ -O2 -static-pie", true},
    {"clang", "clang++-22 -O2 -Wno-unused"},
    {"clang_no_pie", "clang++-22 -O2 -no-pie -fno-pie"},
};

std::string output_of(const std::string &command) {
  std::string text;
  FILE *pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part;
  for (size_t size; pipe && (size = fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), size);
  if (pipe)
    pclose(pipe);
  return text;
}

std::vector<std::vector<std::string>> words_of(const std::string &command) {
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

uint64_t number(const std::string &hex) {
  return std::stoull(hex, nullptr, 16);
}

std::vector<std::byte> content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class BuiltFiles {
public:
  BuiltFiles() : folder_(testing::TempDir() + "assay-executable." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~BuiltFiles() { std::filesystem::remove_all(folder_); }
  std::string in(const std::string &name) const { return folder_ + "/" + name; }
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
  std::string folder_;
};

// The ranges that readelf finds in the unwind tables, but for the tables of stubs.
Ranges frames_by_readelf(const std::string &path) {
  Ranges plts, ranges;
  for (const auto &line : words_of("readelf -SW " + path + " | sed 's/\\[ */[/'"))
    if (line.size() > 5 && line[1].find("plt") != std::string::npos && line[2] == "PROGBITS")
      plts.insert({number(line[3]), number(line[3]) + number(line[5])});
  std::set<std::string> of_signals; // common entries, by offset
  std::string common;
  for (const auto &line : words_of("readelf --debug-dump=frames " + path + " 2>/dev/null"))
    if (line.size() > 3 && line[3] == "CIE") {
      common = line[0];
    } else if (line.size() > 1 && line[0] == "Augmentation:") {
      if (line[1].find('S') != std::string::npos)
        of_signals.insert(common);
    } else if (line.size() > 5 && line[3] == "FDE") {
      size_t dots = line[5].find("..");
      uint64_t begin = number(line[5].substr(3, dots - 3)), end = number(line[5].substr(dots + 2));
      // What handlers return to is aligned, and its entry begins a byte before.
      if (of_signals.contains(line[4].substr(line[4].find('=') + 1)) && begin % 16 == 15)
        begin++;
      bool is_plt = std::any_of(plts.begin(), plts.end(), [&](const auto &plt) {
        return begin >= plt.first && begin < plt.second;
      });
      if (begin < end && !is_plt)
        ranges.insert({begin, end});
    }
  return ranges;
}

Ranges ranges_of(const Executable &executable, FoundBy found_by) {
  Ranges ranges;
  for (const CodeRange &each : executable.functions())
    if (each.found_by == found_by)
      ranges.insert({each.begin, each.end});
  return ranges;
}

void expect_ordered(const Executable &executable) {
  uint64_t end = 0;
  for (const CodeRange &each : executable.functions()) {
    EXPECT_LE(end, each.begin);
    EXPECT_LT(each.begin, each.end);
    EXPECT_TRUE(executable.executable_at(each.begin));
    EXPECT_TRUE(executable.executable_at(each.end - 1));
    EXPECT_EQ(executable.function_at(each.begin), &each);
    EXPECT_EQ(executable.function_at(each.end - 1), &each);
    end = each.end;
  }
}

class Programs : public testing::TestWithParam<Build> {
protected:
  static void SetUpTestSuite() { files_ = std::make_unique<BuiltFiles>(); }
  static void TearDownTestSuite() { files_.reset(); }
  void SetUp() override {
    path_ = files_->in(GetParam().name);
    if (!std::filesystem::exists(path_))
      files_->built(GetParam().name, GetParam().command, kSource);
    executable_ = std::make_unique<Executable>(path_);
  }
  std::string stripped(const std::string &how) const {
    std::string path = path_ + ".stripped";
    EXPECT_EQ(std::system((how + " -o " + path + " " + path_).c_str()), 0);
    return path;
  }
  uint64_t address_of(const std::string &name) const {
    for (const CodeRange &each : executable_->functions())
      if (each.name == name)
        return each.begin;
    ADD_FAILURE() << name;
    return 0;
  }
  static std::unique_ptr<BuiltFiles> files_;
  std::string path_;
  std::unique_ptr<Executable> executable_;
};
std::unique_ptr<BuiltFiles> Programs::files_;

INSTANTIATE_TEST_SUITE_P(Builds, Programs, testing::ValuesIn(kBuilds),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(Programs, RangesAreThoseOfTheUnwindTables) {
  Ranges expected = frames_by_readelf(path_);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(ranges_of(*executable_, FoundBy::unwind), expected);
  expect_ordered(*executable_);
}

TEST_P(Programs, EachSizedFunctionSymbolBeginsARangeOfItsSize) {
  // Of static programs only what is not libc's, which has labels within frame entries.
  const std::set<std::string> own = {"main",         "without_frame", "_Z7catcheri",
                                     "_ZL7throweri", "_ZL5otheri",    "_ZN5GuardD2Ev"};
  size_t count = 0;
  std::map<uint64_t, std::set<std::string>> names;
  for (const auto &line : words_of("nm -S " + path_))
    if (line.size() == 4 && std::string("tTwW").find(line[2]) != std::string::npos &&
        (!GetParam().is_static || own.contains(line[3]))) {
      count++;
      uint64_t begin = number(line[0]);
      names[begin].insert(line[3]);
      const CodeRange *range = executable_->function_at(begin);
      ASSERT_TRUE(range) << line[3];
      EXPECT_EQ(range->begin, begin) << line[3];
      EXPECT_EQ(range->end, begin + number(line[1])) << line[3];
    }
  EXPECT_GE(count, 4u);
  for (const auto &[begin, some] : names)
    EXPECT_TRUE(some.contains(executable_->function_at(begin)->name)) << *some.begin();
  EXPECT_EQ(executable_->function_at(address_of("without_frame"))->found_by, FoundBy::symbol);
  EXPECT_EQ(executable_->function_at(address_of("_Z7catcheri"))->found_by, FoundBy::unwind);
  ASSERT_TRUE(executable_->entry());
  EXPECT_EQ(executable_->function_at(*executable_->entry())->name, "_start");
}

TEST_P(Programs, StrippedFilesHaveTheSameRangesStubsAndPads) {
  auto same = [&](const Executable &other) {
    EXPECT_EQ(ranges_of(other, FoundBy::unwind), ranges_of(*executable_, FoundBy::unwind));
    EXPECT_EQ(other.landing_pads().size(), executable_->landing_pads().size());
    EXPECT_EQ(other.entry(), executable_->entry());
    expect_ordered(other);
    for (const CodeRange &each : executable_->functions())
      if (each.found_by == FoundBy::plt)
        EXPECT_EQ(other.import_of_stub(each.begin), executable_->import_of_stub(each.begin));
  };
  Executable stripped_file(stripped("strip"));
  same(stripped_file);
  EXPECT_EQ(ranges_of(stripped_file, FoundBy::plt), ranges_of(*executable_, FoundBy::plt));
  EXPECT_EQ(stripped_file.code_pointers(), executable_->code_pointers());
  if (GetParam().is_static)
    return; // their relocations are found by section headers
  // No section headers: their place and number in the ELF header are 0.
  std::vector<std::byte> bytes = content(path_);
  std::fill_n(bytes.begin() + 40, 8, std::byte(0));
  std::fill_n(bytes.begin() + 60, 4, std::byte(0));
  Executable without_sections(std::move(bytes), "without sections");
  same(without_sections);
}

TEST_P(Programs, StubsAreNamedAsByObjdump) {
  std::map<uint64_t, std::string> expected, found;
  for (const auto &line :
       words_of("objdump -d -j .plt -j .plt.sec -j .plt.got " + path_ + " 2>/dev/null"))
    if (line.size() == 2 && line[1].ends_with("@plt>:") && line[1][1] != '*')
      expected[number(line[0])] = line[1].substr(1, line[1].find('@') - 1);
  std::set<std::string> names;
  for (const auto &[address, name] : expected) {
    EXPECT_EQ(executable_->import_of_stub(address), name);
    const CodeRange *stub = executable_->function_at(address);
    ASSERT_TRUE(stub);
    EXPECT_EQ(stub->begin, address);
    EXPECT_EQ(stub->found_by, FoundBy::plt);
    EXPECT_EQ(stub->name, name + "@plt");
    names.insert(name);
  }
  for (const CodeRange &each : executable_->functions())
    if (auto name = executable_->import_of_stub(each.begin); !name.empty())
      EXPECT_TRUE(names.contains(std::string(name))) << name;
  EXPECT_EQ(expected.empty(), GetParam().is_static);
}

TEST_P(Programs, SlotsAreNamedAsByReadelf) {
  std::set<std::string> undefined; // not by value: stubs of non-PIE files give theirs to imports
  for (const auto &line : words_of("nm -D " + path_ + " 2>/dev/null"))
    if (line.size() == 2 || (line.size() == 3 && line[1] == "U"))
      undefined.insert(line.back());
  size_t count = 0;
  for (const auto &line : words_of("readelf -rW " + path_))
    if (line.size() > 4 && (line[2] == "R_X86_64_JUMP_SLO" || line[2] == "R_X86_64_JUMP_SLOT" ||
                            line[2] == "R_X86_64_GLOB_DAT")) {
      count++;
      uint64_t slot = number(line[0]);
      EXPECT_EQ(executable_->import_of_slot(slot), line[4].substr(0, line[4].find('@')));
      EXPECT_EQ(executable_->relocated_word(slot).has_value(), !undefined.contains(line[4]))
          << line[4];
    }
  EXPECT_EQ(count == 0, GetParam().is_static);
}

TEST_P(Programs, TablesOfFunctionsPointToCode) {
  uint64_t table = 0, imported = 0;
  for (const auto &line : words_of("nm " + path_)) {
    if (line.size() == 3 && line[2] == "table")
      table = number(line[0]);
    if (line.size() == 3 && line[2] == "imported")
      imported = number(line[0]);
  }
  ASSERT_TRUE(table && imported);
  uint64_t catcher = address_of("_Z7catcheri"), other = address_of("_ZL5otheri");
  EXPECT_EQ(executable_->relocated_word(table), catcher);
  EXPECT_EQ(executable_->relocated_word(table + 8), other);
  EXPECT_EQ(executable_->relocated_word(table + 4).has_value(),
            !executable_->position_independent());
  const auto &pointers = executable_->code_pointers();
  EXPECT_TRUE(std::binary_search(pointers.begin(), pointers.end(), catcher));
  EXPECT_TRUE(std::binary_search(pointers.begin(), pointers.end(), other));
  EXPECT_TRUE(std::is_sorted(pointers.begin(), pointers.end()));
  EXPECT_EQ(std::adjacent_find(pointers.begin(), pointers.end()), pointers.end());
  for (uint64_t pointer : pointers)
    EXPECT_TRUE(executable_->executable_at(pointer));
  if (executable_->import_of_slot(imported) == "puts") { // else it is a stub's address
    EXPECT_FALSE(executable_->relocated_word(imported));
  }
  EXPECT_TRUE(executable_->writable_at(table));
  EXPECT_FALSE(executable_->executable_at(table));
  EXPECT_FALSE(executable_->writable_at(catcher));
}

TEST_P(Programs, ExceptionsGoToLandingPads) {
  const auto &pads = executable_->landing_pads();
  ASSERT_GE(pads.size(), 3u);
  for (const auto &each : pads) {
    EXPECT_LT(each.call_begin, each.call_end);
    EXPECT_TRUE(executable_->function_at(each.pad));
    EXPECT_EQ(executable_->function_at(each.call_begin),
              executable_->function_at(each.call_end - 1));
  }
  if (GetParam().is_static)
    return; // the unwinder's function cannot be replaced there
  uint64_t base = executable_->segments().front().address;
  std::string watched =
      files_->built(std::string(GetParam().name) + "_watched",
                    fmt::format("{} -rdynamic -DWATCH -DBASE={:#x} -Wl,--export-dynamic",
                                GetParam().command, base),
                    kSource);
  Executable executable(watched);
  std::set<uint64_t> seen;
  for (const auto &line : words_of(watched)) {
    if (line.size() != 2)
      continue;
    uint64_t return_address = number(line[0]), target = number(line[1]);
    seen.insert(target);
    EXPECT_TRUE(std::any_of(executable.landing_pads().begin(), executable.landing_pads().end(),
                            [&](const image::LandingPad &each) {
                              return each.call_begin < return_address &&
                                     return_address <= each.call_end && each.pad == target;
                            }))
        << line[0] << " -> " << line[1];
  }
  EXPECT_GE(seen.size(), 2u); // out of thrower's scope, and into the handlers
}

class Files : public testing::Test {
protected:
  BuiltFiles files_;
  std::string built(const std::string &command, const std::string &assembler) const {
    return files_.built("assembled", command + " -nostdlib", assembler, ".s");
  }
};

TEST_F(Files, SymbolsNameAndDivideAsTheRulesSay) {
  Executable executable(built("gcc -no-pie", R"(
.text
.globl _start, b_alias, a_alias
.weak a_weak
.type _start,@function; .type b_alias,@function; .type a_alias,@function; .type a_weak,@function
.type inner,@function; .type outer,@function; .type nested,@function; .type late,@function
.type no_size,@function; .type giant,@function
_start: .cfi_startproc
inner_none: nop
inner: nop
.cfi_endproc
.size _start, 2
.p2align 4
a_alias: b_alias: a_weak: a_local: .cfi_startproc
ret
.cfi_endproc
.p2align 4
outer: nop
nested: nop
.size nested, 1
nop
late: nop
nop
.size late, 2
.set outer_size, .-outer-1
.size outer, outer_size
.p2align 4
no_size: nop
nop
.p2align 4
giant: ret
.size giant, 0x7fffffffffffffff
nop
)"));
  std::map<std::string, CodeRange> by_name;
  for (const CodeRange &each : executable.functions())
    by_name[each.name] = each;
  EXPECT_EQ(executable.functions().size(), 6u);
  uint64_t start = by_name.at("_start").begin;
  auto expect = [&](const char *name, uint64_t begin, uint64_t end, FoundBy found_by) {
    ASSERT_TRUE(by_name.contains(name)) << name;
    EXPECT_EQ(by_name[name].begin - start, begin) << name;
    EXPECT_EQ(by_name[name].end - start, end) << name;
    EXPECT_EQ(by_name[name].found_by, found_by) << name;
  };
  expect("_start", 0, 2, FoundBy::unwind);
  expect("a_alias", 16, 17, FoundBy::unwind);
  expect("outer", 32, 35, FoundBy::symbol);
  expect("late", 35, 37, FoundBy::symbol);
  expect("no_size", 48, 64, FoundBy::symbol);
  expect("giant", 64, 66, FoundBy::symbol);
  EXPECT_EQ(executable.function_at(start + 33), executable.function_at(start + 32));
  EXPECT_EQ(executable.function_at(start + 40), nullptr);
}

TEST_F(Files, TheEntryPointIsAFunctionIfNothingElseSaysSo) {
  Executable executable(built("gcc -no-pie -s", ".globl _start\n_start: nop\nret\n"));
  ASSERT_EQ(executable.functions().size(), 1u);
  const CodeRange &only = executable.functions().front();
  EXPECT_EQ(only.found_by, FoundBy::entry);
  EXPECT_EQ(only.begin, executable.entry());
  EXPECT_EQ(only.end, only.begin + 2);
  EXPECT_TRUE(only.name.empty());
}

TEST_F(Files, BytesAreThoseOfTheFile) {
  std::string path = built("gcc -no-pie", ".globl _start\n_start: .byte 1,2,3,4,5,6,7,8,9\n"
                                          ".bss\n.skip 100\n");
  Executable executable(path);
  uint64_t start = *executable.entry();
  EXPECT_EQ(executable.read<uint32_t>(start), 0x04030201u);
  EXPECT_EQ(executable.read<uint64_t>(start), 0x0807060504030201u);
  EXPECT_EQ(executable.relocated_word(start), 0x0807060504030201u);
  EXPECT_EQ(executable.bytes_from(start).size(), 9u);
  EXPECT_EQ(executable.bytes(start, 9).size(), 9u);
  EXPECT_TRUE(executable.bytes(start, 10).empty());
  EXPECT_TRUE(executable.bytes(start, UINT64_MAX).empty());
  EXPECT_TRUE(executable.bytes_from(UINT64_MAX).empty());
  for (const image::Segment &segment : executable.segments())
    if (segment.writable) {
      EXPECT_TRUE(executable.bytes_from(segment.address + segment.file_size).empty());
    }
  EXPECT_FALSE(executable.position_independent());
  EXPECT_EQ(executable.path(), path);
  const std::byte *before = executable.bytes(start, 1).data();
  Executable moved(std::move(executable));
  EXPECT_EQ(moved.bytes(start, 1).data(), before);
  Executable from_bytes(content(path), "name");
  Executable moved_bytes(std::move(from_bytes));
  EXPECT_EQ(moved_bytes.read<uint8_t>(start), 1);
  EXPECT_EQ(moved_bytes.path(), "name");
}

void expect_failure(std::vector<std::byte> bytes, const std::string &part) {
  try {
    Executable executable(std::move(bytes), "file");
    ADD_FAILURE() << "no Failure: " << part;
  } catch (const base::Failure &failure) {
    std::string message = failure.what();
    EXPECT_TRUE(message.starts_with("file: ")) << message;
    EXPECT_NE(message.find("; "), std::string::npos) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST_F(Files, WhatCannotBeLoadedIsRefusedInOneSentence) {
  EXPECT_THROW(Executable("/etc/passwd"), base::Failure);
  EXPECT_THROW(Executable("/nowhere"), base::Failure);
  expect_failure({}, "not an ELF file");
  std::string path = built("gcc -no-pie", ".globl _start\n_start: ret\n.data\n.quad 1\n");
  const std::vector<std::byte> good = content(path);
  auto with = [&](size_t offset, auto value) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    return bytes;
  };
  expect_failure({good.begin(), good.begin() + 40}, "within its ELF header");
  expect_failure(with(4, uint8_t(1)), "not for x86-64");
  expect_failure(with(18, uint16_t(183)), "not for x86-64");
  expect_failure(with(16, uint16_t(1)), "object file");
  expect_failure(with(16, uint16_t(4)), "neither an executable");
  expect_failure(with(56, uint16_t(0)), "program headers");
  expect_failure(with(56, uint16_t(0xffff)), "program headers");
  expect_failure(with(32, uint64_t(1) << 60), "program headers");
  uint64_t last_load = 0; // offset of its program header
  for (uint64_t index = 0; index < uint64_t(good[56]); index++)
    if (good[64 + index * 56] == std::byte(1))
      last_load = 64 + index * 56;
  expect_failure(with(last_load + 40, UINT64_MAX), "impossible size");
  expect_failure(with(last_load + 32, uint64_t(1) << 60), "impossible size");
  expect_failure(with(last_load + 8, uint64_t(1) << 60), "it ends before");
  expect_failure(with(last_load + 16, *Executable(path).entry() & ~uint64_t(0xfff)), "overlap");
  expect_failure({good.begin(), good.begin() + 0x1000}, "it ends before");
}

void walk(const Executable &executable) {
  for (const CodeRange &each : executable.functions()) {
    executable.bytes(each.begin, each.end - each.begin);
    executable.import_of_stub(each.begin);
  }
  expect_ordered(executable);
  for (const image::Segment &segment : executable.segments())
    executable.relocated_word(segment.address);
}

TEST_F(Files, ACutOrDamagedFileIsReadOrRefused) {
  std::string path = files_.built("damaged", "g++ -O2 -s", kSource);
  const std::vector<std::byte> good = content(path);
  auto read = [&](std::vector<std::byte> bytes) {
    try {
      walk(Executable(std::move(bytes), "file"));
      return true;
    } catch (const base::Failure &) {
      return false;
    }
  };
  size_t readable = 0;
  for (size_t size = 0; size < good.size(); size += 64)
    readable += read({good.begin(), good.begin() + size});
  EXPECT_GT(readable, 0u); // the section headers at the end are not needed
  std::mt19937 random(1);
  for (int round = 0; round < 1000; round++) {
    std::vector<std::byte> bytes = good;
    for (int change = 0; change < 8; change++)
      bytes[random() % (round % 2 ? 0x800 : bytes.size())] = std::byte(random());
    readable += read(std::move(bytes));
  }
  EXPECT_GT(readable, 100u);
}

// Headers that end llvm::object, and with it the program, if they reach it.
TEST_F(Files, DamagedSectionHeadersAreKeptFromLlvm) {
  std::string path = files_.built("sections", "gcc -g -O1", "int main(void) { return 0; }\n", ".c");
  EXPECT_FALSE(image::section_damage(path));
  EXPECT_FALSE(image::functions(path).empty());
  std::vector<std::byte> bytes = content(path);
  llvm::ELF::Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (uint64_t index = 0; index < header.e_shnum; index++) {
    llvm::ELF::Elf64_Shdr section;
    std::byte *place = bytes.data() + header.e_shoff + index * sizeof(section);
    std::memcpy(&section, place, sizeof(section));
    if (section.sh_type != llvm::ELF::SHT_SYMTAB)
      continue;
    section.sh_entsize = 1;
    std::memcpy(place, &section, sizeof(section));
  }
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(image::section_damage(path));
  EXPECT_THROW(image::functions(path), base::Failure);
  EXPECT_TRUE(image::struct_layouts(path, {"Node"}).empty());
  Executable executable(path); // goes by program headers
  EXPECT_FALSE(executable.functions().empty());
}

TEST(CrashGuard, ACrashIsAnAnswer) {
  EXPECT_TRUE(image::ends_well([] {}));
  EXPECT_FALSE(image::ends_well([] { raise(SIGSEGV); }));
  EXPECT_FALSE(image::ends_well([] { std::abort(); }));
  EXPECT_TRUE(image::ends_well([] {}));
}

// Libraries of the system, if they are there: all frame entries are ranges.
TEST(SystemLibraries, AreReadWhole) {
  size_t count = 0;
  for (const char *path :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/lua5.4",
        "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}) {
    if (!std::filesystem::exists(path))
      continue;
    count++;
    Executable executable{std::string(path)};
    EXPECT_EQ(ranges_of(executable, FoundBy::unwind), frames_by_readelf(path)) << path;
    expect_ordered(executable);
  }
  if (!count)
    GTEST_SKIP() << "no library that is known";
}

TEST(EncodedPointer, FormatsAndBases) {
  auto read = [](std::vector<uint8_t> raw, uint8_t encoding, std::optional<uint64_t> data_base) {
    base::ByteReader reader(std::as_bytes(std::span(raw)), "test", 0x1000);
    return image::read_pointer(reader, encoding, data_base);
  };
  EXPECT_EQ(read({1, 2, 3, 4, 5, 6, 7, 8}, 0x00, {}), 0x0807060504030201u);
  EXPECT_EQ(read({0xfe, 0xff}, 0x02, {}), 0xfffeu);
  EXPECT_EQ(read({0xfe, 0xff}, 0x1a, {}), 0xffeu);
  EXPECT_EQ(read({0xf0, 0xff, 0xff, 0xff}, 0x1b, {}), 0xff0u);
  EXPECT_EQ(read({0, 0, 0, 0}, 0x1b, {}), 0u);
  EXPECT_EQ(read({0x10, 0, 0, 0}, 0x3b, 0x500), 0x510u);
  EXPECT_EQ(read({0x10, 0, 0, 0}, 0x3b, {}), std::nullopt);
  EXPECT_EQ(read({0x10, 0, 0, 0}, 0x9b, {}), std::nullopt);
  EXPECT_EQ(read({0xe5, 0x8e, 0x26}, 0x01, {}), 624485u);
  EXPECT_EQ(read({0x80, 0x7f}, 0x09, {}), static_cast<uint64_t>(-128));
  EXPECT_EQ(read({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 0x01, {}),
            UINT64_MAX);
  EXPECT_THROW(read({1, 2, 3}, 0x03, {}), base::Failure);
  EXPECT_THROW(read({1, 2, 3, 4, 5, 6, 7, 8}, 0x05, {}), base::Failure);
  EXPECT_THROW(read(std::vector<uint8_t>(17, 0x80), 0x01, {}), base::Failure);
}

} // namespace
