// By the ioctl PAGEMAP_SCAN of the pagemap file (Linux 6.7), which skips what has no page tables; by reading its
// 8 bytes a page where that is missing; by mincore where there is no pagemap at all (no /proc). mincore comes
// last, because it calls a page that was swapped out absent.
//
// To look at the whole range where nobody tells was refused: a shadow spans terabytes, and reading it maps the
// zero page everywhere.

#include "runtime/core/shadow/touched_pages.h"

#include "runtime/core/system/losses.h"
#include "runtime/core/system/own_files.h"
#include "runtime/core/system/pages.h"

namespace assay {
namespace {

constexpr long kNoMemory = -12; // ENOMEM, of mincore: a part is not mapped

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

// Each of these goes on from begin, and is false where it cannot go on.

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
    if (got < 8)
      return false;
    uint64_t pages = (uint64_t)got / 8;
    for (uint64_t i = 0; i < pages; i++)
      if (entries[i] >> 62) // present or swapped
        f(context, begin + i * kPage, begin + (i + 1) * kPage);
    begin += pages * kPage;
  }
  return true;
}

bool ask_mincore(uint64_t &begin, uint64_t end, Callback f, void *context) {
  constexpr uint64_t kMax = 2048;
  unsigned char resident[kMax];
  for (uint64_t most = kMax; begin < end;) {
    uint64_t pages = (end - begin) / kPage;
    pages = pages < most ? pages : most;
    long result = sys::call(SYS_mincore, (long)begin, (long)(pages * kPage), (long)resident);
    if (result == kNoMemory && pages > 1) { // finer, around the hole
      most = pages / 2;
      continue;
    }
    if (sys::failed(result) && result != kNoMemory)
      return false;
    for (uint64_t i = 0; result == 0 && i < pages; i++)
      if (resident[i] & 1)
        f(context, begin + i * kPage, begin + (i + 1) * kPage);
    begin += pages * kPage;
    most = most < kMax ? most * 2 : kMax;
  }
  return true;
}

} // namespace

void for_each_touched(uint64_t begin, uint64_t end, Callback f, void *context) {
  long pagemap = pagemap_file.descriptor();
  if (pagemap >= 0 &&
      (scan(pagemap, begin, end, f, context) || read_entries(pagemap, begin, end, f, context)))
    return;
  if (!ask_mincore(begin, end, f, context))
    count_loss(ASSAY_LOSS_untold_pages, 1);
}

} // namespace assay
