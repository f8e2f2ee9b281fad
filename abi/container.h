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
// A fixed part of many zeros (a heap info block and its histograms) is sparse: the kind has the bit
// ASSAY_RECORD_SPARSE, and in the place of the fixed part there are
//
//   uint64_t size                 bytes of the fixed part, a multiple of 8, at most ASSAY_SPARSE_MAX
//   uint64_t is_there[]           a bit for each 8 bytes of it, the lowest first: they are not zero
//   uint64_t words[]              those 8 bytes, in their order
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
  uint32_t kind;     // ASSAY_RECORD_* of abi/records.def; with ASSAY_RECORD_SPARSE
  uint32_t checksum; // assay_checksum of the body, seeded with kind and fixed_size
  uint32_t length;   // bytes of the body, without padding; at most ASSAY_RECORD_MAX
  uint32_t
      fixed_size; // bytes of the fixed part, at the start of the body, as it is stored; a multiple of 8
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

#define ASSAY_RECORD_SPARSE (1U << 31)
#define ASSAY_SPARSE_MIN 128  // bytes of a fixed part; a shorter one is not worth it
#define ASSAY_SPARSE_MAX 4096 // a longer one is stored as it is

// Words of a sparse fixed part that stand before those that are there.
static inline size_t assay_sparse_head(size_t size) {
  return 1 + (size / 8 + 63) / 64;
}
// Bytes that assay_make_sparse() may write.
static inline size_t assay_sparse_room(size_t size) {
  return 8 * assay_sparse_head(size) + size;
}

// Stores a fixed part sparsely, with room at `to` for assay_sparse_room(size) bytes. Returns the
// bytes of it; 0 if that is not shorter than it was.
static inline size_t assay_make_sparse(const void *fixed, size_t size, void *to) {
  const uint64_t full_size = size;
  size_t used = assay_sparse_head(size);
  __builtin_memcpy(to, &full_size, 8);
  for (size_t first = 0; first < size / 8; first += 64) {
    uint64_t is_there = 0;
    for (size_t i = first; i < first + 64 && i < size / 8; i++) {
      uint64_t word;
      __builtin_memcpy(&word, (const char *)fixed + 8 * i, 8);
      __builtin_memcpy((char *)to + 8 * used, &word, 8);
      used += word != 0;
      is_there |= (uint64_t)(word != 0) << (i - first);
    }
    __builtin_memcpy((char *)to + 8 + first / 8, &is_there, 8);
  }
  return 8 * used < size ? 8 * used : 0;
}

// The way back, into room for ASSAY_SPARSE_MAX bytes. Returns the bytes of the fixed part; 0 if what is stored is none.
static inline size_t assay_make_whole(const void *stored, size_t stored_size, void *to) {
  uint64_t size = 0;
  if (stored_size >= 8)
    __builtin_memcpy(&size, stored, 8);
  if (size % 8 || size > ASSAY_SPARSE_MAX || stored_size < 8 * assay_sparse_head(size))
    return 0;
  size_t used = assay_sparse_head(size);
  for (size_t i = 0; i < size / 8; i++) {
    uint64_t is_there, word = 0;
    __builtin_memcpy(&is_there, (const char *)stored + 8 + i / 64 * 8, 8);
    if (is_there >> i % 64 & 1) {
      if (8 * used + 8 > stored_size)
        return 0;
      __builtin_memcpy(&word, (const char *)stored + 8 * used++, 8);
    }
    __builtin_memcpy((char *)to + 8 * i, &word, 8);
  }
  return 8 * used == stored_size ? size : 0;
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
