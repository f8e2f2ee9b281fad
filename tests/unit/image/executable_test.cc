// What image::Executable says of programs that the test builds, compared with what binutils say of
// them, and with where their own exceptions go when they run.

#include "image/executable.h"

#include "base/fail.h"
#include "built_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace {

using image::CodeRange;
using image::Executable;
using image::FoundBy;
using image_tests::BuiltFiles, image_tests::content, image_tests::expect_ordered,
    image_tests::kSource, image_tests::number, image_tests::output_of, image_tests::words_of;
using Ranges = std::set<std::pair<uint64_t, uint64_t>>;

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

TEST_P(Programs, FunctionsAndStubsStayWithoutUnwinding) {
  Executable dropped(path_);
  dropped.drop_unwinding();
  EXPECT_EQ(dropped.unwind_ranges().capacity(), 0u);
  EXPECT_EQ(dropped.landing_pads().capacity(), 0u);
  EXPECT_EQ(dropped.code_pointers().capacity(), 0u);
  ASSERT_EQ(dropped.functions().size(), executable_->functions().size());
  for (const CodeRange &range : executable_->functions()) {
    const CodeRange *same = dropped.function_at(range.begin);
    ASSERT_TRUE(same);
    EXPECT_EQ(same->name, range.name);
    EXPECT_EQ(dropped.import_of_stub(range.begin), executable_->import_of_stub(range.begin));
  }
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

} // namespace
