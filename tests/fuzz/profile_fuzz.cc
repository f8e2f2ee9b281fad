// Any bytes: reading a profile ends, with a Failure or a profile; that profile can be written, and
// what was written reads as itself.
//
// The checksums would stop nearly every mutation at the first record, so they are made right first;
// one input in eight, by its first byte, keeps them as they are.

#include "base/fail.h"
#include "profile/container.h"
#include "profile/profile.h"
#include "profile/record_text.h"
#include "tests/fuzz/seal.h"

#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto raw = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  if (size && data[size - 1] % 8)
    seal(bytes, ASSAY_FILE_PROFILE);
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
