// The moved code of one executable or shared object: its functions at another place, with
// instructions between theirs that log. Made by the tool (trace/), mapped by the runtime
// (runtime/relocated/) within 2 GiB of the original.
//
//   +----------------------+
//   | AssayMovedHeader     |
//   | AssayMovedFixup …    |  words of the code that depend on the process
//   | AssayMovedJump …     |  where the original is overwritten with a jump into the moved code
//   | AssayMovedReturn …   |  where calls return to, moved and original; by the moved one
//   | code, unwind tables  |  what is mapped, from a multiple of the page on
//   +----------------------+
//
// Code begins with ASSAY_MOVED_SLOTS addresses that the runtime fills in; then instructions; then
// .eh_frame with its language-specific data and .eh_frame_hdr, as an ELF file has them. All but the
// words with a fixup is position independent.
#pragma once

#include <stdint.h>

#define ASSAY_MOVED_MAGIC "ASSAYMOV"
#define ASSAY_MOVED_VERSION 7

// Addresses at the beginning of the code.
enum {
  ASSAY_MOVED_SLOT_check, // what makes room where a buffer is full, and gives a thread its stream
  ASSAY_MOVED_SLOT_check_inside, // the same where no stream may begin: within what a skeleton computes
  ASSAY_MOVED_SLOT_act,          // in place of a system call that sets a handler
  ASSAY_MOVED_SLOT_begun, // behind a system call that made threads or processes, in the new one
  ASSAY_MOVED_SLOT_before_call, // before a system call that may have the kernel forbid others
  ASSAY_MOVED_SLOTS = 8,
};

enum {
  ASSAY_FIXUP_image, // 4 bytes: a distance to the original; less where the code lies, plus the original's load bias
  ASSAY_FIXUP_log, // 4 bytes: an offset in AssayThreadLog; plus the log's offset from fs
  ASSAY_FIXUP_id,  // 4 bytes: the number of a group in this module; plus the module's first
};

typedef struct AssayMovedFixup {
  uint32_t at : 30; // in the code
  uint32_t kind : 2;
} AssayMovedFixup;

// From a linked address to a place in the code: `jmp rel32` (5 bytes), or, where there is no room for it, `jmp rel8` to
// another such jump (2 bytes; `to` is then that jump's distance from `from`).
typedef struct AssayMovedJump {
  uint64_t from;
  uint32_t to;
  uint32_t bytes;
} AssayMovedJump;

typedef struct AssayMovedReturn {
  uint32_t moved;    // in the code
  uint32_t original; // from image_begin
} AssayMovedReturn;

typedef struct AssayMovedHeader {
  char magic[8];
  uint32_t version;
  uint32_t checksum;               // of all that follows in the file
  uint64_t image_begin, image_end; // linked addresses of the original: its first page to its last
  uint64_t file_bytes;             // of this file
  uint32_t fixups, jumps, returns; // how many
  uint32_t code_offset;            // in this file
  uint32_t code_bytes;             // what is mapped
  uint32_t instructions_end;       // in the code; behind are tables
  uint32_t unwind_header;          // .eh_frame_hdr, in the code; 0: there is none
  uint32_t ids;                    // of groups: 0 … ids - 1
} AssayMovedHeader;
