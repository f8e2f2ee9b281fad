// Object files of an executable that were not built with assay-cc, of an archive for example.
#pragma once

#include "analyze/heap.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace analyze {

// A context is of such a file if the source of the function that allocates is none of the module's units, and nothing
// from there was accessed. Not if it is a header, which is of any unit; a source that another one includes is told by
// its accesses.
class OtherUnits {
public:
  using Source = std::pair<uint32_t, std::string>; // module, and its name without folder and ending

  // The profile must outlive it.
  explicit OtherUnits(const profile::Profile &profile);

  // The source of a context; no name where it is not known, or a header.
  Source note(const profile::HeapContext &context, const HeapContextRow &row);
  // Whether the source is of such a file, after all were noted.
  bool has(const Source &source) const;

private:
  Source source_of(const profile::HeapContext &context, const HeapContextRow &row) const;

  const profile::Profile &profile_;
  std::set<Source> counted_; // units, and what else has accesses
};

} // namespace analyze
