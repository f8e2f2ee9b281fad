// What image::Executable says of files made by hand: symbols, bytes, files that are damaged or cannot be loaded.

#include "image/executable.h"

#include "image/crash_guard.h"
#include "image/elf.h"
#include "image/encoded_pointer.h"
#include "image/layout.h"
#include "image/section_check.h"

#include "base/fail.h"
#include "built_files.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <unistd.h>
#include <vector>

namespace {

using image::CodeRange;
using image::Executable;
using image::FoundBy;
using image_tests::content, image_tests::expect_ordered, image_tests::kSource;
using image_tests::Files;

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
