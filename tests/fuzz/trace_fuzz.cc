// Any bytes: reading a trace ends, with a Failure or its accesses.
//
// Checksums are made right first, as in profile_fuzz.cc. A skeleton that has made many accesses is
// left: what is damaged may make as many as it likes.

#include "base/fail.h"
#include "tests/fuzz/seal.h"
#include "trace/trace_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Enough {};

class Count : public profile::AccessSink {
public:
  void accesses(const profile::AccessOrigin &, std::span<const profile::Access> batch) override {
    add(batch.size());
  }
  void loop(const profile::AccessOrigin &, std::span<const profile::AccessRun> body,
            uint64_t) override {
    add(body.size());
  }

private:
  void add(uint64_t more) {
    constexpr uint64_t kMax = 1 << 22;
    if ((made_ += more) > kMax)
      throw Enough();
  }
  uint64_t made_ = 0;
};

template <class F> void try_to(F &&f) {
  try {
    f();
  } catch (const base::Failure &) {
  } catch (const Enough &) {
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto raw = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  if (size && data[size - 1] % 8)
    seal(bytes, ASSAY_FILE_TRACE);
  const int file = memfd_create("trace", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  try_to([&] {
    const trace::Trace trace(fmt::format("/proc/self/fd/{}", file));
    try_to([&] {
      Count count;
      trace.replay(count);
    });
    try_to([&] {
      Count count;
      trace.replay_by_thread(count);
    });
    for (size_t i = 0; i < trace.files().size(); i++)
      try_to([&] { trace.definitions_of(i); });
  });
  close(file);
  return 0;
}
