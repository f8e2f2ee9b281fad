// Names for lines: by the allocation that they belong to, or by what lies at their address.
#pragma once

#include "analyze/workingset.h"

#include <unordered_map>

namespace analyze {

class OwnerFinder {
public:
  // Of a process with this working set and these modules.
  OwnerFinder(const profile::Profile &profile, const profile::WorkingSet &set,
              const std::vector<profile::Mapping> &mappings, image::Symbols &symbols,
              const Wrappers &wrappers);

  // Index into names() of an allocation site (index into WorkingSet::owners).
  uint32_t of_site(uint32_t site);
  // Of the line at an address that no allocation is known to own.
  uint32_t of_address(uint64_t address);

  std::vector<OwnerName> take_names() { return std::move(names_); }
  const OwnerName &name(uint32_t index) const { return names_[index]; }

private:
  struct Piece { // of the address space
    uint64_t end = 0;
    OwnerName owner;
    const profile::Mapping *mapping = nullptr; // of a module
  };
  uint32_t index_of(const OwnerName &owner);
  OwnerName site_name(const profile::OwnerSite &site);
  std::string global_name(const profile::Mapping &mapping, uint64_t address);
  void put(uint64_t start, uint64_t end, OwnerName owner, const profile::Mapping *mapping);

  const profile::Profile &profile_;
  const profile::WorkingSet &set_;
  image::Symbols &symbols_;
  const Wrappers &wrappers_;
  std::vector<OwnerName> names_;
  std::map<OwnerName, uint32_t> known_;
  static constexpr uint32_t kUnnamed = UINT32_MAX;
  std::vector<uint32_t> sites_;
  std::map<uint64_t, Piece> pieces_; // by start; they do not overlap
};

} // namespace analyze
