// Lines of the source that miss much: one finding for each, with the step of its addresses if they
// have one, as that decides what can be done.

#include "analyze/access_places.h"
#include "analyze/cache_simulation.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <tuple>

namespace analyze {
namespace {

constexpr double kMinOfTouches = .01; // misses that are worth a word, of all touches
constexpr double kMinOfMisses = .1;   // of all misses
constexpr double kMinMissing = .25;   // of its own touches
constexpr double kNearlyAll =
    .75; // of its own touches: from one miss to the next is from one touch to the next
constexpr size_t kMaxSites = 64; // of those that miss most: lines are looked up for them

struct Group {
  CacheSums sums;
  uint32_t site = 0; // the one that misses most
  uint64_t most = 0;
};

// "sum sums.c:12", or "sum at 0x4abe in sums" of a file without lines.
std::string site_text(AccessPlaces &places, uint32_t site) {
  const auto &function = places.named(places.function_of(site));
  const AccessPlaces::Line line = places.line_of(site);
  return line.line ? fmt::format("{} {}:{}", function.name, image::base_name(line.file), line.line)
                   : fmt::format("{} at {:#x} in {}", function.name, places.address_of(site),
                                 image::base_name(places.module_of(function).path));
}

bool is_even(const CacheSimulation &simulation, const Group &group) {
  return simulation.strides()[group.site].votes >= group.most / 2;
}

// One line after the other, each used more than once: prefetchers fetch them in time, and there is
// nothing to be gained.
bool is_sequential(const CacheSimulation &simulation, const Group &group) {
  const int64_t stride = simulation.strides()[group.site].stride;
  return is_even(simulation, group) &&
         std::abs(stride) == int64_t{simulation.settings().l1.line_bytes} &&
         double(group.sums.missed(Level::l1)) < kNearlyAll * double(group.sums.touches);
}

Finding finding_of(const CacheSimulation &simulation, const Group &group, const std::string &where,
                   const CacheSums &all) {
  const uint64_t misses = group.sums.missed(Level::l1);
  const StrideVote &stride = simulation.strides()[group.site];
  Finding finding;
  finding.rule = "cache_misses";
  finding.location = where;
  finding.saves = {double(misses), "misses"};
  finding.weight = double(misses) / double(all.missed(Level::l1));
  std::string step;
  if (is_even(simulation, group) && double(misses) >= kNearlyAll * double(group.sums.touches)) {
    finding.rule = "strided_misses";
    step = fmt::format("each access is {} bytes {} the one before, and ", std::abs(stride.stride),
                       stride.stride > 0 ? "behind" : "before");
    finding.action =
        stride.returns_beside
            ? "let the inner loop go over neighbours: exchange the loops, work in blocks, or store "
              "the elements in the order of their use"
            : "make the element smaller, or keep the member that is used here in an "
              "array of its own";
  } else {
    finding.action = "keep together in memory what is used together, or work on less at a time";
  }
  finding.message = fmt::format("{}: {}{} of its touches miss L1", where, step,
                                base::format_share(double(misses) / double(group.sums.touches)));
  finding.evidence =
      fmt::format("{} of {} of L1", base::format_count(double(misses)),
                  base::format_counted(double(all.missed(Level::l1)), "miss", "misses"));
  for (Level level : simulation.levels())
    if (level != Level::l1 && group.sums.missed(level))
      finding.evidence +=
          fmt::format(", {} of {} of {}", base::format_count(double(group.sums.missed(level))),
                      base::format_count(double(all.missed(level))), level_name(level));
  return finding;
}

} // namespace

std::vector<Finding> cache_findings(const CacheSimulation &simulation, AccessPlaces &places) {
  const CacheSums all = simulation.all();
  std::vector<Finding> findings;
  if (double(all.missed(Level::l1)) < kMinOfTouches * double(all.touches))
    return findings;
  const std::vector<CacheSums> &of_site = simulation.of_site();
  std::vector<uint32_t> sites;
  for (uint32_t site = 0; site < of_site.size(); site++)
    if (of_site[site].missed(Level::l1))
      sites.push_back(site);
  base::stable_sort(sites, [&](uint32_t a, uint32_t b) {
    return of_site[a].missed(Level::l1) > of_site[b].missed(Level::l1);
  });
  if (sites.size() > kMaxSites)
    sites.resize(kMaxSites);
  std::map<std::tuple<uint32_t, std::string, uint64_t>, Group> groups; // by function and line
  for (uint32_t site : sites) {
    const AccessPlaces::Line line = places.line_of(site);
    Group &group =
        groups[{places.function_of(site), line.file, line.line ? line.line : uint64_t{site}}];
    group.sums += of_site[site];
    if (of_site[site].missed(Level::l1) > group.most) {
      group.most = of_site[site].missed(Level::l1);
      group.site = site;
    }
  }
  for (const auto &[key, group] : groups) {
    const auto misses = double(group.sums.missed(Level::l1));
    if (misses < kMinOfTouches * double(all.touches) ||
        misses < kMinOfMisses * double(all.missed(Level::l1)) ||
        misses < kMinMissing * double(group.sums.touches) || is_sequential(simulation, group))
      continue;
    findings.push_back(finding_of(simulation, group, site_text(places, group.site), all));
  }
  base::stable_sort(findings,
                    [](const Finding &a, const Finding &b) { return a.weight > b.weight; });
  return findings;
}

} // namespace analyze
