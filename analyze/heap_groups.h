// The contexts of a heap profile summed by site, by type and by module.
#pragma once

#include "analyze/heap.h"

#include <set>
#include <string>
#include <vector>

namespace analyze {

// One row a name, those of the most bytes first.
std::vector<HeapGroupRow> group_by(const std::vector<HeapContextRow> &rows,
                                   std::string (*name_of)(const HeapContextRow &));

// One row for the contexts of one owner, type and origin. One line of the source may be in several programs
// (`executables`, by path): there it is one site.
std::vector<HeapContextRow> sites_of(const std::vector<HeapContextRow> &contexts,
                                     const std::set<std::string> &executables);

// Where the types that hold the most are defined, from the debug info of instrumented modules.
void find_layouts(std::vector<HeapGroupRow> &types, const profile::Profile &profile);

void most_objects_first(std::vector<FreeSite> &places);

} // namespace analyze
