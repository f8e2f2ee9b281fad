// The address space as pieces that do not overlap: a later region takes its range from earlier ones.
//
// A new piece may lie within an older one: the older one is cut, and what is left behind the new
// one becomes a piece of its own. Modules are put last, so a line in a module's data has the name
// of a global, not of the memory around it.
//
// A line may reach over several pieces: it has the name of the last one that begins in it or before
// it. Within a module, the symbol that covers most of the line names it. Equal names are one owner,
// and sites have their names made only when they are asked for. A scalar type that came through a
// wrapper is left out: it is the wrapper's, not the object's.

#include "analyze/owner_finder.h"

#include "analyze/ownership.h"

#include <fmt/format.h>

#include <algorithm>

namespace analyze {

std::string full_name(const OwnerName &owner) {
  std::string name = owner.type.empty() ? owner.name : owner.type + " from " + owner.name;
  return owner.kind == "global" ? "global " + name : name;
}

OwnerFinder::OwnerFinder(const profile::Profile &profile, const profile::WorkingSet &set,
                         const std::vector<profile::Mapping> &mappings, image::Symbols &symbols,
                         const Wrappers &wrappers)
    : profile_(profile), set_(set), symbols_(symbols), wrappers_(wrappers),
      sites_(set.owners.size(), kUnnamed) {
  for (const profile::Region &region : set_.regions) {
    OwnerName owner;
    switch (region.kind) {
    case ASSAY_REGION_STACK:
      owner = {"stack", fmt::format("stack of thread {}", region.owner), ""};
      break;
    case ASSAY_REGION_BREAK: owner = {"memory", "heap that no recorded object owns", ""}; break;
    case ASSAY_REGION_FILE: owner = {"file", region.name, ""}; break;
    default: owner = {"memory", "anonymous memory", ""};
    }
    put(region.start, region.end, std::move(owner), nullptr);
  }
  for (const profile::Mapping &mapping : mappings)
    put(mapping.start, mapping.end, {}, &mapping);
}

void OwnerFinder::put(uint64_t start, uint64_t end, OwnerName owner,
                      const profile::Mapping *mapping) {
  if (start >= end)
    return;
  auto at = pieces_.lower_bound(start);
  if (at != pieces_.begin()) {
    auto before = std::prev(at);
    if (before->second.end > start) { // cut its end; what is left beyond becomes a piece
      if (before->second.end > end)
        pieces_[end] = before->second;
      before->second.end = start;
    }
  }
  for (at = pieces_.lower_bound(start); at != pieces_.end() && at->first < end;) {
    if (at->second.end > end)
      pieces_[end] = at->second;
    at = pieces_.erase(at);
  }
  pieces_[start] = {end, std::move(owner), mapping};
}

uint32_t OwnerFinder::index_of(const OwnerName &owner) {
  auto [known, is_new] = known_.try_emplace(owner, static_cast<uint32_t>(names_.size()));
  if (is_new)
    names_.push_back(owner);
  return known->second;
}

OwnerName OwnerFinder::site_name(const profile::OwnerSite &site) {
  CallStack frames = frames_of(profile_, site.stack, symbols_);
  OwnerName owner{"heap", "", ""};
  if (site.type.known())
    owner.type = profile_.types[site.type.v].name;
  if (is_scalar(owner.type) && through_wrapper(frames, wrappers_))
    owner.type.clear(); // the wrapper's, not the object's
  const Frame &frame = frames[analyze::owner(frames, wrappers_)];
  owner.name = frame.line
                   ? fmt::format("{} at {}:{}", frame.function, base_name(frame.file), frame.line)
                   : frame.function;
  if (!site.origin.name.empty())
    owner.name += fmt::format(" ({})", site.origin.name);
  return owner;
}

uint32_t OwnerFinder::of_site(uint32_t site) {
  if (sites_[site] == kUnnamed)
    sites_[site] = index_of(site_name(set_.owners[site]));
  return sites_[site];
}

// The symbol of the program's that covers most of the line; the module's data where there is none.
std::string OwnerFinder::global_name(const profile::Mapping &mapping, uint64_t address) {
  const std::string &path = profile_.modules[mapping.module.v].path;
  const image::Data &data = symbols_.data(mapping.module.v);
  const auto &symbols = data.symbols;
  uint64_t begin = address - mapping.bias, end = begin + set_.line_bytes, most = 0;
  const image::DataSymbol *best = nullptr;
  auto symbol = std::partition_point(symbols.begin(), symbols.end(), [&](const auto &each) {
    return each.address + each.size <= begin;
  });
  for (; symbol != symbols.end() && symbol->address < end; ++symbol) {
    uint64_t covered =
        std::min(symbol->address + symbol->size, end) - std::max(symbol->address, begin);
    if (covered > most && !is_profilers_own(symbol->linkage_name)) {
      most = covered;
      best = &*symbol;
    }
  }
  if (best)
    return image::demangled(best->linkage_name);
  return (data.has_constants(begin, end) ? "constants of " : "data of ") + base_name(path);
}

uint32_t OwnerFinder::of_address(uint64_t address) {
  auto after = pieces_.upper_bound(address + set_.line_bytes - 1);
  if (after != pieces_.begin()) {
    const auto &[start, piece] = *std::prev(after);
    if (address < piece.end)
      return index_of(piece.mapping ? OwnerName{"global", global_name(*piece.mapping, address), ""}
                                    : piece.owner);
  }
  return index_of({"memory", "memory that no recorded object owns", ""});
}

} // namespace analyze
