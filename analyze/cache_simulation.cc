// The line that a thread touched last is in every level, as the last one used: nothing changes if
// it is touched again. So most touches are one comparison.

#include "analyze/cache_simulation.h"

#include "analyze/lines.h"
#include "base/fail.h"

#include <bit>

namespace analyze {

namespace {

constexpr const char *kNames[kLevels] = {"L1", "L2", "LLC", "TLB", "L2 TLB"};
constexpr const char *kKeys[kLevels] = {"l1", "l2", "llc", "tlb", "l2_tlb"};

Cache tlb_of(const TlbShape &shape) {
  return Cache(shape.entries / shape.ways, shape.ways);
}

Cache cache_of(const CacheShape &shape) {
  return Cache(shape.sets(), shape.ways);
}

} // namespace

const char *level_name(Level level) {
  return kNames[static_cast<unsigned>(level)];
}

const char *level_key(Level level) {
  return kKeys[static_cast<unsigned>(level)];
}

void check(const CacheSettings &settings) {
  for (const auto &level : {settings.l2, settings.llc})
    if (level && level->line_bytes != settings.l1.line_bytes)
      base::fail("{}: lines of {} bytes behind lines of {}; all levels have lines of one size",
                 level->text(), level->line_bytes, settings.l1.line_bytes);
  if (!std::has_single_bit(settings.page_bytes) || settings.page_bytes < 1024 ||
      settings.page_bytes > 1 << 30 || settings.page_bytes < settings.l1.line_bytes)
    base::fail("--page {}: a page has 1KiB to 1GiB, a power of two", settings.page_bytes);
}

struct CacheSimulation::Private {
  explicit Private(const CacheSettings &settings)
      : l1(cache_of(settings.l1)), tlb(tlb_of(settings.tlb)) {
    if (settings.l2)
      l2.emplace(cache_of(*settings.l2));
    if (settings.l2_tlb)
      l2_tlb.emplace(tlb_of(*settings.l2_tlb));
  }
  Cache l1, tlb;
  std::optional<Cache> l2, l2_tlb;
  uint64_t last_line = UINT64_MAX, last_page = UINT64_MAX;
};

CacheSimulation::CacheSimulation(const CacheSettings &settings)
    : settings_(settings),
      line_shift_(static_cast<unsigned>(std::countr_zero(settings.l1.line_bytes))),
      page_shift_(static_cast<unsigned>(std::countr_zero(settings.page_bytes))) {
  check(settings);
  if (settings.llc)
    llc_.emplace(cache_of(*settings.llc));
}

CacheSimulation::~CacheSimulation() = default;

std::vector<Level> CacheSimulation::levels() const {
  std::vector<Level> levels = {Level::l1};
  if (settings_.l2)
    levels.push_back(Level::l2);
  if (settings_.llc)
    levels.push_back(Level::llc);
  levels.push_back(Level::tlb);
  if (settings_.l2_tlb)
    levels.push_back(Level::l2_tlb);
  return levels;
}

CacheSimulation::Private &CacheSimulation::caches_of(const profile::AccessOrigin &origin) {
  auto &caches = of_thread_[{origin.process, origin.thread}];
  if (!caches)
    caches = std::make_unique<Private>(settings_);
  return *caches;
}

void CacheSimulation::miss(Private &caches, CacheSums &sums, uint64_t line) {
  sums.misses[static_cast<unsigned>(Level::l1)]++;
  if (caches.l2) {
    if (caches.l2->touch(line))
      return;
    sums.misses[static_cast<unsigned>(Level::l2)]++;
  }
  if (llc_ && !llc_->touch(line))
    sums.misses[static_cast<unsigned>(Level::llc)]++;
}

void CacheSimulation::miss_page(Private &caches, CacheSums &sums, uint64_t page) {
  sums.misses[static_cast<unsigned>(Level::tlb)]++;
  if (caches.l2_tlb && !caches.l2_tlb->touch(page))
    sums.misses[static_cast<unsigned>(Level::l2_tlb)]++;
}

void CacheSimulation::accesses(const profile::AccessOrigin &origin,
                               std::span<const profile::Access> batch) {
  const uint64_t space = spaces_.of(origin.process);
  Private &caches = caches_of(origin);
  for (const profile::Access &each : batch) {
    if (each.site >= of_site_.size()) {
      of_site_.resize(each.site + size_t{1});
      strides_.resize(of_site_.size());
    }
    CacheSums &sums = of_site_[each.site];
    const uint64_t address = each.address + space;
    for_each_line(address, each.size, line_shift_, [&](uint64_t line) {
      sums.touches++;
      sums.writes += each.is_write;
      if (line == caches.last_line)
        return;
      caches.last_line = line;
      if (!caches.l1.touch(line)) {
        miss(caches, sums, line);
        strides_[each.site].miss(address);
      }
      const uint64_t page = line >> (page_shift_ - line_shift_);
      if (page == caches.last_page)
        return;
      caches.last_page = page;
      if (!caches.tlb.touch(page))
        miss_page(caches, sums, page);
    });
  }
}

CacheSums CacheSimulation::all() const {
  CacheSums all;
  for (const CacheSums &site : of_site_)
    all += site;
  return all;
}

} // namespace analyze
