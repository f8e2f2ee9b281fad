// What a statically linked executable that `assay trace instrument` wrote tells the runtime that it
// carries (runtime/relocated/carried/). The tool (trace/static_program.cc) writes it over the
// symbol assay_carried_runtime in the runtime's data.
//
// The executable lies where it did. Behind it lie the runtime, as its own file has it, and one more segment:
//
//   +----------------------+
//   | program headers      |
//   | a note               |  for those who read the file (image/carried_note.h)
//   | thread-local image   |  the runtime's, then a copy of the program's: so the runtime's has a fixed distance from fs
//   | .eh_frame_hdr        |  sorted: the program's entries, the runtime's, and room for those of moved code
//   | room                 |  for moved code
//   +----------------------+
//
// Addresses are linked ones.
#pragma once

#include <stdint.h>

typedef struct AssayCarriedRuntime {
  uint64_t self;  // where this lies: tells the load bias
  uint64_t entry; // of the program
  uint64_t headers, header_count;
  // The runtime's thread-local data in its own file, and in the image of each thread's.
  uint64_t thread_template, thread_template_bytes, thread_image;
  int64_t thread_offset;               // from fs to it
  uint64_t unwind_header, unwind_room; // .eh_frame_hdr, and the entries that there is room for
  uint64_t code_room, code_room_bytes;
} AssayCarriedRuntime;

// .eh_frame_hdr as linkers write it; its entries follow. All are distances: `frames` from itself,
// those of entries from the header.
typedef struct AssayUnwindHeader {
  uint8_t version;      // 1
  uint8_t encodings[3]; // of frames, count and entries: ASSAY_UNWIND_ENCODINGS
  int32_t frames;       // .eh_frame
  uint32_t count;
} AssayUnwindHeader;
#define ASSAY_UNWIND_ENCODINGS {0x1b, 0x03, 0x3b} // pcrel|sdata4, udata4, datarel|sdata4

typedef struct AssayUnwindEntry {
  int32_t code, frame;
} AssayUnwindEntry;
