// Any bytes: reading a profile ends, with a Failure or a profile; that profile can be written, and
// what was written reads as itself.
//
// The checksums would stop nearly every mutation at the first record, so they are made right first;
// one input in eight, by its first byte, keeps them as they are.

#include "base/fail.h"
#include "profile/container.h"
#include "profile/profile.h"
#include "profile/record_text.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void seal(std::vector<std::byte> &bytes) {
  AssayFileHeader header;
  if (bytes.size() < sizeof(header))
    return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(header.magic, ASSAY_FILE_MAGIC, sizeof(header.magic));
  header.version = 1;
  header.kind = ASSAY_FILE_PROFILE;
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

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto raw = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  if (size && data[size - 1] % 8)
    seal(bytes);
  try {
    profile::ContainerReader reader(bytes, "x");
    profile::RecordView record;
    while (reader.next(record))
      profile::record_text(record, true);
    profile::Profile profile = profile::read_bytes(bytes, "x");
    profile::Profile again = profile::read_bytes(profile::write_bytes(profile), "x");
    if (again.processes.size() != std::max<size_t>(profile.processes.size(), 1))
      std::abort();
  } catch (const base::Failure &) {
  }
  return 0;
}
