// /proc/self/pagemap: by the ioctl PAGEMAP_SCAN (Linux 6.7), which skips what has no page tables; by
// reading its 8 bytes a page where that is missing. mincore was refused: it calls a page that was
// swapped out absent.

#include "runtime/core/touched_pages.h"

#include "runtime/core/syscall.h"

namespace assay {
namespace {

constexpr uint64_t kPage = 4096;

// linux/fs.h of 6.7; older headers lack it.
struct Region {
  uint64_t start, end, categories;
};
struct ScanArguments {
  uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages;
  uint64_t inverted, all_of, any_of, returned;
};
constexpr unsigned long kScan = 0xc0606610;
constexpr uint64_t kPresent = 1 << 3, kSwapped = 1 << 4;

using Callback = void (*)(void *, uint64_t, uint64_t);

// False if the kernel lacks the call.
bool scan(long pagemap, uint64_t &begin, uint64_t end, Callback f, void *context) {
  while (begin < end) {
    Region regions[64];
    ScanArguments a = {};
    a.size = sizeof a;
    a.start = begin;
    a.end = end;
    a.regions = (uint64_t)regions;
    a.region_count = 64;
    a.any_of = a.returned = kPresent | kSwapped;
    long n = sys::call(SYS_ioctl, pagemap, (long)kScan, (long)&a);
    if (sys::failed(n))
      return false;
    for (long i = 0; i < n; i++)
      f(context, regions[i].start, regions[i].end);
    if (a.walk_end <= begin)
      return false;
    begin = a.walk_end;
  }
  return true;
}

bool read_entries(long pagemap, uint64_t &begin, uint64_t end, Callback f, void *context) {
  while (begin < end) {
    uint64_t entries[256], wanted = (end - begin) / kPage;
    wanted = wanted < 256 ? wanted : 256;
    long got = sys::call(SYS_pread64, pagemap, (long)entries, (long)(wanted * 8),
                         (long)(begin / kPage * 8));
    if (got <= 0)
      return false;
    uint64_t pages = (uint64_t)got / 8;
    for (uint64_t i = 0; i < pages; i++)
      if (entries[i] >> 62) // present or swapped
        f(context, begin + i * kPage, begin + (i + 1) * kPage);
    begin += pages * kPage;
  }
  return true;
}

} // namespace

void for_each_touched(uint64_t begin, uint64_t end, Callback f, void *context) {
  long pagemap = sys::open("/proc/self/pagemap", O_RDONLY);
  if (!sys::failed(pagemap)) {
    scan(pagemap, begin, end, f, context) || read_entries(pagemap, begin, end, f, context);
    sys::close(pagemap);
  }
  if (begin < end)
    f(context, begin, end);
}

} // namespace assay
