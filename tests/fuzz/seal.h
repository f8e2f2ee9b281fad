// Makes the checksums of a container right, which would stop nearly every mutation at the first record.
#pragma once

#include "profile/container.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

inline void seal(std::vector<std::byte> &bytes, uint32_t kind) {
  AssayFileHeader header;
  if (bytes.size() < sizeof(header))
    return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(header.magic, ASSAY_FILE_MAGIC, sizeof(header.magic));
  header.version = 1;
  header.kind = kind;
  header.header_size = sizeof(header);
  header.checksum = assay_checksum(&header, offsetof(AssayFileHeader, checksum), 0);
  std::memcpy(bytes.data(), &header, sizeof(header));
  for (size_t at = sizeof(header); bytes.size() - at > sizeof(AssayRecordHeader);) {
    AssayRecordHeader record;
    std::memcpy(&record, bytes.data() + at, sizeof(record));
    size_t left = bytes.size() - at - sizeof(record);
    if (record.length > left || record.fixed_size > record.length)
      return;
    const std::byte *body = bytes.data() + at + sizeof(record);
    record.checksum = assay_record_checksum(&record, body, body + record.fixed_size);
    std::memcpy(bytes.data() + at, &record, sizeof(record));
    at += std::min(left, record.length + assay_padding(record.length)) + sizeof(record);
  }
}
