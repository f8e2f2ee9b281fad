// Decoded code as it is published to those who interpret it where nothing can be decoded: the
// kernel's BPF program and the handler in a process. The tool decodes a page of 1,024 bytes when
// the first sample comes to it, and adds to it.
//
//   page    pages[number].first[offset]: the entry of the instruction that begins there; 0: none is known
//   entry   entries[first]: its head; entries[first + 1], …: its micro-ops, and what is to be recorded between them
//
// Entries are written before the `first` that names them, and never changed. Entry 0 is not used.
#pragma once

#include "abi/uop.h"

// Less than a page of memory, because what is executed often lies scattered.
#define ASSAY_CODE_PAGE_BITS 10
#define ASSAY_CODE_PAGE_BYTES (1 << ASSAY_CODE_PAGE_BITS)

// The registers that an interpreter of published code keeps; it has no x87. Micro-ops name no others.
#define ASSAY_PUBLISHED_REGISTERS 320

struct assay_code_page {
  uint64_t link; // where it was linked; of code without a file, where it lies
  uint32_t
      is_stable; // 1: of a file; 0: of memory that a program may write, so that each instruction's bytes are compared
  uint32_t reserved;
  uint32_t first[ASSAY_CODE_PAGE_BYTES];
};

struct assay_code_head {
  uint8_t length; // bytes of the instruction
  uint8_t flags;  // enum assay_code_flags
  uint16_t uops;  // entries behind the head
  uint32_t reserved;
  uint8_t bytes[8]; // its first bytes; zeros behind its end
};

static inline uint64_t assay_code_page_begin(uint64_t address) {
  return address & ~(uint64_t)(ASSAY_CODE_PAGE_BYTES - 1);
}

// Of an address, or of a place as below.
static inline uint32_t assay_offset_in_page(uint64_t address) {
  return (uint32_t)(address & (ASSAY_CODE_PAGE_BYTES - 1));
}

// Where an instruction is: the number of its page, and the offset in it.
static inline uint32_t assay_place_in_page(uint32_t page, uint64_t address) {
  return page << ASSAY_CODE_PAGE_BITS | assay_offset_in_page(address);
}
static inline uint32_t assay_page_of(uint32_t where) {
  return where >> ASSAY_CODE_PAGE_BITS;
}

enum assay_code_flags {
  ASSAY_CODE_REPEATS = 1, // a string instruction, once; it goes on at itself
  ASSAY_CODE_JUMPS = 2,   // control goes elsewhere, always: a jump, a call, a return
};

// What stands among micro-ops beside those of uops.def. `width` is the number of bytes of the value.
enum assay_published_code {
  // The value of dst is recorded as kind `i` (enum assay_value_kind).
  ASSAY_PUBLISHED_VALUE = ASSAY_UOP_COUNT,
  // The address a + (b << shift) + c + i is recorded, as that of a load or of a store.
  ASSAY_PUBLISHED_LOAD,
  ASSAY_PUBLISHED_STORE,
  // A function begins: the arguments in the set of general registers `imm` are recorded, and where it returns to.
  ASSAY_PUBLISHED_ENTRY,
  // Where the function returns to lies at a + i, and is recorded.
  ASSAY_PUBLISHED_CALLER,
  // The register dst is not known from here on.
  ASSAY_PUBLISHED_FORGET,
  // Nothing can be interpreted from here on; `imm` says why (enum assay_sample_end).
  ASSAY_PUBLISHED_STOP,
  ASSAY_PUBLISHED_COUNT
};

// A page as a sample of a process meets it.
struct assay_code_key {
  uint64_t page;    // in the file, bytes; of code without a file, the address
  uint64_t file;    // the inode's number; 0: code without a file
  uint32_t device;  // the inode's file system; of code without a file, the process
  uint32_t version; // of the inode, as far as it is known
};

#ifdef __cplusplus
static_assert(sizeof(struct assay_code_head) == sizeof(struct assay_uop), "a head is an entry");
static_assert(ASSAY_PUBLISHED_COUNT < 256, "an operation is a byte");
static_assert(ASSAY_PUBLISHED_REGISTERS == ASSAY_REG_X87, "all registers before those of x87");
#else
_Static_assert(sizeof(struct assay_code_head) == sizeof(struct assay_uop), "a head is an entry");
_Static_assert(ASSAY_PUBLISHED_COUNT < 256, "an operation is a byte");
_Static_assert(ASSAY_PUBLISHED_REGISTERS == ASSAY_REG_X87, "all registers before those of x87");
#endif
