// The file that every run writes: one framing, little-endian, 8-byte aligned.
//
//   +--------------------+
//   | AssayFileHeader    |  64 bytes: magic, version, kind, pid, start time, checksum of itself
//   +--------------------+
//   | AssayRecordHeader  |  16 bytes: kind, checksum, length of the body
//   | body               |  fixed part (a struct of abi/records.def), then its tail, if it has one
//   | padding            |  zeros to the next multiple of 8; not in length, not in the checksum
//   +--------------------+
//   | ...                |
//
// Rules. A reader skips kinds that it does not know and counts them. A fixed part that is longer
// than the reader's struct comes from a newer minor version: tails therefore start at `fixed_size`,
// which is part of the record header. A record whose checksum is wrong, or that runs past the end,
// ends what can be read; everything before it counts. Profiles (kind 1) merge; traces (kind 2) are
// ordered and do not.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ASSAY_FILE_MAGIC                                                                           \
  "ASSAY\r\n\x1a" // 8 bytes; breaks visibly when a transfer changes line ends

enum {
  ASSAY_FILE_PROFILE = 1,
  ASSAY_FILE_TRACE = 2,
};

typedef struct AssayFileHeader {
  char magic[8];
  uint32_t version;     // ASSAY_ABI_VERSION of the writer
  uint32_t header_size; // sizeof(AssayFileHeader) of the writer; records start there
  uint32_t kind;        // ASSAY_FILE_PROFILE or ASSAY_FILE_TRACE
  uint32_t pid;         // of the process that was measured; 0 in a merged file
  uint64_t start_unix_ns;
  uint64_t reserved[3]; // zero
  uint32_t reserved32;  // zero
  uint32_t checksum;    // assay_checksum of all bytes before it
} AssayFileHeader;

typedef struct AssayRecordHeader {
  uint32_t kind;       // ASSAY_RECORD_* of abi/records.def
  uint32_t checksum;   // assay_checksum of the body, seeded with kind and fixed_size
  uint32_t length;     // bytes of the body, without padding; at most ASSAY_RECORD_MAX
  uint32_t fixed_size; // bytes of the fixed part, at the start of the body; a multiple of 8
} AssayRecordHeader;

#define ASSAY_RECORD_MAX (64U << 20)

static_assert(sizeof(AssayFileHeader) == 64, "the file header is 64 bytes");
static_assert(offsetof(AssayFileHeader, checksum) == 60, "the checksum comes last");
static_assert(sizeof(AssayRecordHeader) == 16, "the record header is 16 bytes");

// 32 bits that change when any bit of the data does: eight bytes at a time, multiply and fold. Not
// a cryptographic hash; it finds torn writes and damaged copies.
static inline uint32_t assay_checksum(const void *data, size_t size, uint64_t seed) {
  const unsigned char *p = (const unsigned char *)data;
  uint64_t hash = seed ^ (0x9e3779b97f4a7c15ULL + size);
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    __builtin_memcpy(&word, p, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  for (size_t i = 0; i < size; i++)
    rest |= (uint64_t)p[i] << (8 * i);
  hash = (hash ^ rest) * 0xff51afd7ed558ccdULL;
  return (uint32_t)(hash ^ (hash >> 32));
}

// Of a record: its tail, seeded with its fixed part, seeded with its header. In two parts, so that
// the writer need not join them first.
static inline uint32_t assay_record_checksum(const AssayRecordHeader *header, const void *fixed,
                                             const void *tail) {
  uint64_t seed = ((uint64_t)header->fixed_size << 32) | header->kind;
  return assay_checksum(tail, header->length - header->fixed_size,
                        assay_checksum(fixed, header->fixed_size, seed));
}

static inline size_t assay_padding(size_t length) {
  return (8 - length % 8) % 8;
}

// A code location in a file: number of a module (of an earlier Module record; 0 for none, then the
// offset is an address) and the address in that module's own ELF image. Return addresses, not
// calls.
#define ASSAY_FRAME_MODULE_SHIFT 48
static inline uint64_t assay_frame(uint64_t module, uint64_t offset) {
  return (module << ASSAY_FRAME_MODULE_SHIFT) | (offset & 0xffffffffffffULL);
}
