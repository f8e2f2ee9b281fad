// Hostile, foreign, cut and future files: each gives exactly one clear sentence, or a counted loss
// with everything before the damage kept.

#include "tests/unit/profile/profile_builder.h"

#include "abi/version.h"
#include "base/fail.h"
#include "profile/container.h"
#include "profile/record_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace {

using Bytes = std::vector<std::byte>;

Bytes good() {
  return profile::write_bytes(profile_builder::random_profile(1));
}

void set32(Bytes &bytes, size_t offset, uint32_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

void seal_header(Bytes &bytes) {
  set32(bytes, offsetof(AssayFileHeader, checksum),
        assay_checksum(bytes.data(), offsetof(AssayFileHeader, checksum), 0));
}

void header_field(Bytes &bytes, size_t offset, uint32_t value) {
  set32(bytes, offset, value);
  seal_header(bytes);
}

Bytes text(const std::string &content) {
  auto raw = std::as_bytes(std::span(content));
  return Bytes(raw.begin(), raw.end());
}

// A record with a right checksum and any contents.
void add_record(Bytes &bytes, uint32_t kind, uint32_t fixed_size, const Bytes &body) {
  AssayRecordHeader header = {kind, 0, static_cast<uint32_t>(body.size()), fixed_size};
  header.checksum = assay_record_checksum(&header, body.data(), body.data() + fixed_size);
  auto raw = std::as_bytes(std::span(&header, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.resize(bytes.size() + assay_padding(body.size()));
}

struct Refused {
  const char *name;
  std::function<Bytes()> make;
  std::string sentence; // after "x.assay: "
};

const Refused kRefused[] = {
    {"NoBytes", [] { return Bytes(); },
     "it is not a profile of assay; name a .assay file or a run's folder"},
    {"OneByte", [] { return Bytes(1); },
     "it is not a profile of assay; name a .assay file or a run's folder"},
    {"Text",
     [] { return text("#!/bin/sh\necho a profile this is not, but long enough to be one\n"); },
     "it is not a profile of assay; name a .assay file or a run's folder"},
    {"Elf",
     [] {
       return text("\x7f"
                   "ELF and so on and so on and so on and so on and so on and so on");
     },
     "it is not a profile of assay; name a .assay file or a run's folder"},
    {"Zeros", [] { return Bytes(4096); },
     "it is not a profile of assay; name a .assay file or a run's folder"},
    {"LineEndsChanged",
     [] {
       Bytes b = good();
       b.erase(b.begin() + 5); // \r\n became \n
       return b;
     },
     "its line ends were changed in a transfer; copy it again in binary mode"},
    {"CutInTheHeader",
     [] {
       Bytes b = good();
       b.resize(40);
       return b;
     },
     "it ends within the file header (40 of 64 bytes); run the program again"},
    {"Newer",
     [] {
       Bytes b = good();
       header_field(b, offsetof(AssayFileHeader, version), ASSAY_ABI_VERSION + 1);
       return b;
     },
     "it was written by a newer assay (format " + std::to_string(ASSAY_ABI_VERSION + 1) +
         ", this one reads " + std::to_string(ASSAY_ABI_VERSION) + "); read it with that version"},
    {"VersionZero",
     [] {
       Bytes b = good();
       header_field(b, offsetof(AssayFileHeader, version), 0);
       return b;
     },
     "it states format 0, which never was; run the program again"},
    {"HeaderDamaged",
     [] {
       Bytes b = good();
       b[30] ^= std::byte(1);
       return b;
     },
     "its file header is damaged; copy it again, or run the program again"},
    {"Trace",
     [] {
       Bytes b = good();
       header_field(b, offsetof(AssayFileHeader, kind), ASSAY_FILE_TRACE);
       return b;
     },
     "it is a trace, not a profile; use `assay trace`"},
    {"UnknownKindOfFile",
     [] {
       Bytes b = good();
       header_field(b, offsetof(AssayFileHeader, kind), 99);
       return b;
     },
     "it is of kind 99, which this version does not know; read it with the assay that wrote it"},
    {"HeaderSizeTooSmall",
     [] {
       Bytes b = good();
       header_field(b, offsetof(AssayFileHeader, header_size), 8);
       return b;
     },
     "its file header states an impossible size (8 bytes); run the program again"},
    {"HeaderSizePastTheEnd",
     [] {
       Bytes b = good();
       header_field(b, offsetof(AssayFileHeader, header_size), 0xfffffff8);
       return b;
     },
     "its file header states an impossible size (4294967288 bytes); run the program again"},
};

TEST(Damage, FilesThatCannotBeReadAreRefusedInOneSentence) {
  for (const Refused &c : kRefused) {
    Bytes bytes = c.make();
    try {
      profile::read_bytes(bytes, "x.assay");
      ADD_FAILURE() << c.name << ": it was read";
    } catch (const base::Failure &failure) {
      EXPECT_EQ(failure.what(), "x.assay: " + c.sentence) << c.name;
    }
  }
}

// The tail is damaged: one note, a loss of that many bytes, and what came before is there.
struct Cut {
  const char *name;
  std::function<void(Bytes &)> damage; // of a file that has its first two records intact
  std::string reason;
};

size_t offset_of_record(const Bytes &bytes, int wanted) {
  profile::ContainerReader reader(bytes, "x");
  profile::RecordView record;
  for (int index = 0; reader.next(record); index++)
    if (index == wanted)
      return record.offset;
  return bytes.size();
}

const Cut kCut[] = {
    {"HalfARecordHeader", [](Bytes &b) { b.resize(offset_of_record(b, 5) + 7); },
     "it ends within a record at offset"},
    {"HalfABody", [](Bytes &b) { b.resize(offset_of_record(b, 5) + 17); },
     "it ends within a record at offset"},
    {"FlippedBit", [](Bytes &b) { b[offset_of_record(b, 5) + 20] ^= std::byte(4); },
     "has a wrong checksum"},
    {"FlippedKind", [](Bytes &b) { b[offset_of_record(b, 5)] ^= std::byte(4); },
     "has a wrong checksum"},
    {"HugeLength", [](Bytes &b) { set32(b, offset_of_record(b, 5) + 8, 0xffffffff); },
     "has an impossible length"},
    {"LengthPastTheEnd", [](Bytes &b) { set32(b, offset_of_record(b, 5) + 8, 1 << 25); },
     "it ends within a record at offset"},
    {"FixedPartLongerThanTheBody", [](Bytes &b) { set32(b, offset_of_record(b, 5) + 12, 1 << 25); },
     "has an impossible length"},
    {"ZerosAtTheEnd", [](Bytes &b) { b.resize(b.size() + 4096); }, ""},
    {"GarbageAtTheEnd",
     [](Bytes &b) {
       Bytes garbage = text("garbage garbage garbage garbage garbage");
       b.insert(b.end(), garbage.begin(), garbage.end());
     },
     "offset"},
};

TEST(Damage, WhatComesBeforeADamagedTailCounts) {
  for (const Cut &c : kCut) {
    Bytes bytes = good();
    c.damage(bytes);
    profile::Profile p = profile::read_bytes(bytes, "x.assay");
    EXPECT_EQ(p.processes.size(), 1u) << c.name;
    EXPECT_EQ(p.processes.at(0).executable, "/bin/app") << c.name;
    ASSERT_EQ(p.notes.size(), 1u) << c.name;
    EXPECT_EQ(p.notes[0].find("x.assay: "), 0u) << c.name;
    EXPECT_NE(p.notes[0].find(c.reason), std::string::npos) << c.name << ": " << p.notes[0];
    EXPECT_NE(p.notes[0].find("were left out"), std::string::npos) << c.name;
    EXPECT_GT(p.losses[ASSAY_LOSS_truncated], 0u) << c.name;
    // A killed program leaves a short file; what is wrong in it says nothing of the program.
    EXPECT_EQ(p.losses.contains(ASSAY_LOSS_killed), c.reason.starts_with("it ends")) << c.name;
  }
}

// Records with a right checksum and impossible contents are skipped and counted; the rest is read.
struct Odd {
  const char *name;
  uint32_t kind;
  uint32_t fixed_size;
  Bytes body;
  uint32_t loss;
};

Bytes sized(size_t size, std::initializer_list<std::pair<size_t, uint64_t>> words = {}) {
  Bytes bytes(size);
  for (auto [index, value] : words)
    std::memcpy(bytes.data() + index * 8, &value, std::min<size_t>(8, size - index * 8));
  return bytes;
}

const Odd kOdd[] = {
    {"UnknownKind", 4242, 8, sized(64), ASSAY_LOSS_unknown_record},
    {"EmptyUnknownKind", 4243, 0, {}, ASSAY_LOSS_unknown_record},
    {"EmptyBody", ASSAY_RECORD_Program, 0, {}, ASSAY_LOSS_bad_record},
    {"FixedPartTooShort", ASSAY_RECORD_HeapFreed, 8, sized(8), ASSAY_LOSS_bad_record},
    {"StringWithoutEnd", ASSAY_RECORD_Program, sizeof(AssayProgram),
     sized(sizeof(AssayProgram) + 3, {{5, 0x616161}}), ASSAY_LOSS_bad_record},
    {"ModuleZero", ASSAY_RECORD_Module, sizeof(AssayModule), sized(sizeof(AssayModule)),
     ASSAY_LOSS_bad_record},
    {"BuildIdTooLong", ASSAY_RECORD_Module, sizeof(AssayModule),
     sized(sizeof(AssayModule), {{0, 999}, {5, 0xffffffff}}), ASSAY_LOSS_bad_record},
    {"UnloadOfNothing", ASSAY_RECORD_ModuleUnload, 16, sized(16, {{0, 12345}}),
     ASSAY_LOSS_bad_record},
    {"SitesOfNothing", ASSAY_RECORD_Sites, 8, sized(8, {{0, 12345}}), ASSAY_LOSS_bad_record},
    {"SiteOfSizeZero", ASSAY_RECORD_Sites, 8, sized(16, {{0, 1}, {1, 1}}), ASSAY_LOSS_bad_record},
    {"SiteNameTooLong", ASSAY_RECORD_Sites, 8,
     sized(40, {{0, 1}, {1, (uint64_t{32} << 32) | 1}, {4, 0xffffffff}}), ASSAY_LOSS_bad_record},
    {"ContextZero", ASSAY_RECORD_Context, 16, sized(16), ASSAY_LOSS_bad_record},
    {"HalfAFrame", ASSAY_RECORD_Context, 16, sized(20, {{0, 99999}}), ASSAY_LOSS_bad_record},
    {"ContextTwice", ASSAY_RECORD_Context, 16, sized(32, {{0, 1}, {2, 0xdead}, {3, 0xbeef}}),
     ASSAY_LOSS_foreign_context},
    {"FreedOfContextZero", ASSAY_RECORD_HeapFreed, sizeof(AssayHeapFreed),
     sized(sizeof(AssayHeapFreed)), ASSAY_LOSS_bad_record},
    {"FreedOfHugeContext", ASSAY_RECORD_HeapFreed, sizeof(AssayHeapFreed),
     sized(sizeof(AssayHeapFreed), {{0, UINT64_MAX}}), ASSAY_LOSS_bad_record},
    {"LossOfHugeKind", ASSAY_RECORD_Loss, 16, sized(16, {{0, UINT64_MAX}}), ASSAY_LOSS_bad_record},
};

TEST(Damage, ImpossibleRecordsAreCountedAndTheRestIsRead) {
  const profile::Profile clean = profile::read_bytes(good(), "x.assay");
  for (const Odd &c : kOdd) {
    Bytes bytes = good();
    add_record(bytes, c.kind, c.fixed_size, c.body);
    profile::Profile p = profile::read_bytes(bytes, "x.assay");
    EXPECT_EQ(p.losses[c.loss], 1u) << c.name;
    p.losses.erase(c.loss);
    EXPECT_TRUE(p == clean) << c.name << ": something else changed";
  }
}

TEST(Damage, EveryCutOfAFileIsReadUpToTheCut) {
  Bytes whole = profile::write_bytes(profile_builder::random_profile(2, 3));
  uint64_t objects_before = 0;
  for (size_t size = sizeof(AssayFileHeader); size <= whole.size(); size += 4) {
    Bytes part(whole.begin(), whole.begin() + size);
    profile::Profile p = profile::read_bytes(part, "x");
    uint64_t objects = 0;
    for (const auto &context : p.heap)
      objects += context.freed.alloc_count;
    EXPECT_GE(objects, objects_before) << "at " << size;
    objects_before = objects;
  }
}

TEST(Damage, AnyFlippedBitIsReadOrRefused) {
  const profile::Profile undamaged = profile_builder::random_profile(3, 3);
  Bytes whole = profile::write_bytes(undamaged);
  size_t refused = 0, cut = 0;
  for (size_t bit = 0; bit < whole.size() * 8; bit += 5) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= std::byte(1 << bit % 8);
    try {
      profile::Profile p = profile::read_bytes(damaged, "x");
      profile::write_bytes(p);
      cut += !p.notes.empty();
      EXPECT_TRUE(p == undamaged || !p.notes.empty()) << "bit " << bit; // equal: it was in padding
    } catch (const base::Failure &) {
      refused++;
    }
  }
  EXPECT_GT(refused, 50u);              // in the header
  EXPECT_GT(cut, whole.size() * 7 / 5); // in a record
}

TEST(Damage, OddRecordsCanBePrinted) {
  for (const Odd &c : kOdd) {
    const std::span<const std::byte> body = c.body;
    const size_t fixed = std::min<size_t>(c.fixed_size, body.size());
    profile::RecordView view = {c.kind, 64, body.first(fixed), body.subspan(fixed)};
    std::string line = profile::record_text(view, false);
    EXPECT_EQ(line.find("@64 "), 0u) << c.name;
    EXPECT_EQ(line.find('\n'), std::string::npos) << c.name;
  }
}

// What is stored of a fixed part of `words` words, of which every `step`th is there.
Bytes sparse_of(size_t words, size_t step, Bytes &fixed) {
  std::vector<uint64_t> numbers(words);
  for (size_t i = 0; i < words; i += step)
    numbers[i] = ~i;
  auto raw = std::as_bytes(std::span(numbers));
  fixed.assign(raw.begin(), raw.end());
  Bytes stored(assay_sparse_room(fixed.size()));
  stored.resize(assay_make_sparse(fixed.data(), fixed.size(), stored.data()));
  return stored;
}

TEST(Sparse, IsWholeAgainOrNotUsed) {
  for (size_t words = 1; words <= ASSAY_SPARSE_MAX / 8; words++)
    for (size_t step : {1, 2, 7, 64, 1000}) {
      Bytes fixed, stored = sparse_of(words, step, fixed), whole(ASSAY_SPARSE_MAX);
      if (stored.empty()) {
        EXPECT_GE(8 * (assay_sparse_head(fixed.size()) + (words + step - 1) / step), fixed.size());
        continue;
      }
      EXPECT_LT(stored.size(), fixed.size());
      whole.resize(assay_make_whole(stored.data(), stored.size(), whole.data()));
      EXPECT_TRUE(whole == fixed) << words << " words, each " << step << "th";
    }
}

TEST(Sparse, WhatCannotBeMadeWholeEndsTheReading) {
  Bytes fixed, stored = sparse_of(100, 9, fixed);
  const Bytes clean = good();
  Bytes more = stored, less = stored, odd = stored, huge = stored;
  more.resize(stored.size() + 8);
  less.resize(stored.size() - 8);
  set32(odd, 0, 801);
  set32(huge, 0, ASSAY_SPARSE_MAX + 8);
  for (const Bytes &body : {more, less, odd, huge, Bytes(8), Bytes()}) {
    Bytes bytes = clean;
    add_record(bytes, ASSAY_RECORD_HeapFreed | ASSAY_RECORD_SPARSE,
               static_cast<uint32_t>(body.size()), body);
    profile::ContainerReader reader(bytes, "x");
    profile::RecordView record;
    while (reader.next(record))
      EXPECT_LT(record.offset, clean.size());
    EXPECT_GE(reader.lost_bytes(), sizeof(AssayRecordHeader) + body.size());
    EXPECT_NE(reader.damage().find("states words that it does not have"), std::string::npos)
        << reader.damage();
  }
}

TEST(Sparse, RecordsAreReadAsTheirStructs) {
  profile::Profile p = profile_builder::random_profile(4, 4);
  size_t fixed = 0, blocks = 0;
  Bytes bytes = profile::write_bytes(p);
  profile::ContainerReader reader(bytes, "x");
  for (profile::RecordView record; reader.next(record);)
    if (record.kind == ASSAY_RECORD_HeapFreed) {
      fixed += record.fixed.size();
      blocks++;
    }
  ASSERT_GT(blocks, 0u);
  EXPECT_EQ(fixed, blocks * sizeof(AssayHeapFreed));
}

} // namespace
