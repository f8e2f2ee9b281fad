// What a statically linked executable that `assay trace instrument` wrote tells the runtime that it carries
// (runtime/relocated/carried/). The tool (trace/static_program.cc) writes it over the symbol assay_carried_runtime in the runtime's data.
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

#define ASSAY_CARRIED_VERSION 1

typedef struct AssayCarriedRuntime {
  uint64_t version;
  uint64_t self;  // where this lies: tells the load bias
  uint64_t entry; // of the program
  uint64_t headers, header_count;
  uint64_t thread_template,
      thread_template_bytes; // of the runtime's thread-local data, in its own file
  uint64_t thread_image,
      thread_bytes;      // the same in the image of each thread's, and what it takes there
  int64_t thread_offset; // from fs to it
  uint64_t unwind_header, unwind_entries,
      unwind_room; // .eh_frame_hdr, its entries now, and at most
  uint64_t code_room, code_room_bytes;
} AssayCarriedRuntime;
