// The note is found among others, and nothing is read behind what is cut or describes more than there is.

#include "image/carried_note.h"

#include <gtest/gtest.h>

#include <cstring>
#include <elf.h>
#include <vector>

namespace {

using image::CarriedNote;
using Bytes = std::vector<std::byte>;

template <class Content>
void append_note(Bytes &to, const char *name, uint32_t type, const Content &content) {
  const Elf64_Nhdr header = {static_cast<Elf64_Word>(std::strlen(name) + 1), sizeof content, type};
  auto append = [&](const void *from, size_t size) {
    const auto *bytes = static_cast<const std::byte *>(from);
    to.insert(to.end(), bytes, bytes + size);
    to.resize((to.size() + 3) / 4 * 4);
  };
  append(&header, sizeof header);
  append(name, header.n_namesz);
  append(&content, sizeof content);
}

const CarriedNote kNote = {0x401000, 0x400500, 0x400300};

TEST(CarriedNote, IsFoundBehindOthers) {
  Bytes notes;
  append_note(notes, "GNU", NT_GNU_BUILD_ID, std::array<char, 5>{1, 2, 3, 4, 5});
  append_note(notes, "Assay", image::kCarriedNoteType + 1, kNote);
  append_note(notes, "assay", image::kCarriedNoteType, kNote);
  EXPECT_FALSE(image::carried_note(notes));
  append_note(notes, "Assay", image::kCarriedNoteType, kNote);
  const auto found = image::carried_note(notes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, kNote.begin);
  EXPECT_EQ(found->entry, kNote.entry);
  EXPECT_EQ(found->unwind_header, kNote.unwind_header);
}

TEST(CarriedNote, OfAnotherSizeIsNone) {
  Bytes notes;
  append_note(notes, "Assay", image::kCarriedNoteType, uint64_t{3});
  EXPECT_FALSE(image::carried_note(notes));
}

TEST(CarriedNote, IsNotReadBehindTheEnd) {
  Bytes notes;
  append_note(notes, "Assay", image::kCarriedNoteType, kNote);
  for (size_t size = 0; size < notes.size(); size++) {
    const Bytes cut(notes.begin(), notes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(image::carried_note(cut)) << size;
  }
  for (const uint32_t size : {4000u, UINT32_MAX, UINT32_MAX - 3}) // of the name, of the content
    for (const size_t at : {offsetof(Elf64_Nhdr, n_namesz), offsetof(Elf64_Nhdr, n_descsz)}) {
      Bytes wrong = notes;
      std::memcpy(wrong.data() + at, &size, sizeof size);
      EXPECT_FALSE(image::carried_note(wrong)) << size << " " << at;
    }
}

} // namespace
